// This header stands before the library's own in our build. It declares the templates that nearly every file
// with JSON in it would compile again, and framework/json_once.cpp compiles them once. The header is not
// installed, so a build against an installation uses the library as it is.
#pragma once

#include_next <nlohmann/json.hpp>

#ifndef ANTICHAIN_JSON_TEMPLATE
#define ANTICHAIN_JSON_TEMPLATE extern template
#endif

ANTICHAIN_JSON_TEMPLATE class nlohmann::basic_json<>;
ANTICHAIN_JSON_TEMPLATE class nlohmann::basic_json<nlohmann::ordered_map>;
ANTICHAIN_JSON_TEMPLATE class nlohmann::detail::serializer<nlohmann::json>;
ANTICHAIN_JSON_TEMPLATE class nlohmann::detail::serializer<nlohmann::ordered_json>;
ANTICHAIN_JSON_TEMPLATE nlohmann::json nlohmann::json::parse(const std::string&, const parser_callback_t,
                                                             const bool, const bool);
ANTICHAIN_JSON_TEMPLATE nlohmann::json nlohmann::json::parse(std::string&, const parser_callback_t,
                                                             const bool, const bool);
ANTICHAIN_JSON_TEMPLATE nlohmann::json nlohmann::json::parse(std::string&&, const parser_callback_t,
                                                             const bool, const bool);
ANTICHAIN_JSON_TEMPLATE nlohmann::ordered_json nlohmann::ordered_json::parse(const std::string&,
                                                                             const parser_callback_t,
                                                                             const bool, const bool);
ANTICHAIN_JSON_TEMPLATE nlohmann::ordered_json nlohmann::ordered_json::parse(std::string&&,
                                                                             const parser_callback_t,
                                                                             const bool, const bool);
