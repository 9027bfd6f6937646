// A NameTable has the names that the values of an enum have in options and files.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/error.h"

namespace antichain {

template <class E, size_t count>
struct NameTable {
  std::string_view kind;  // "objective", for errors
  std::array<std::pair<E, std::string_view>, count> rows;

  std::string_view name_of(E value) const {
    for (const auto& [known, name] : rows)
      if (known == value) return name;
    ANTICHAIN_CHECK(false, "every value of an enum has a name");
    return "";
  }
  // Throws a usage Error that lists the names.
  E value(std::string_view name) const {
    for (const auto& [known, its_name] : rows)
      if (its_name == name) return known;
    std::string choices;
    for (const auto& [known, its_name] : rows) (choices += choices.empty() ? "" : ", ") += its_name;
    throw Error("there is no " + std::string(kind) + " called \"" + std::string(name) + "\"",
                "choose one of " + choices, ExitCode::usage);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [known, name] : rows) all.emplace_back(name);
    return all;
  }
};

}  // namespace antichain
