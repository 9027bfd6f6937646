#include "partition/profile/json_text.h"

#include <fmt/format.h>

#include <cmath>

namespace antichain {
namespace {

double nanoseconds(double seconds) { return std::round(seconds * 1e9); }

double seconds_from(const JsonReader& field, double units_per_s) {
  const double value = field.number();
  if (value > double(most_of_all) * 1e-9 * units_per_s)
    field.fail(fmt::format("{} is longer than {} days", value, most_of_all / 86'400'000'000'000));
  return nanoseconds(value / units_per_s) / 1e9;
}

}  // namespace

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_microseconds(double seconds) { return fmt::format("{:.3f}", nanoseconds(seconds) / 1e3); }
std::string json_milliseconds(double seconds) { return fmt::format("{:.6f}", nanoseconds(seconds) / 1e6); }

double seconds_from_us(const JsonReader& field) { return seconds_from(field, 1e6); }
double seconds_from_ms(const JsonReader& field) { return seconds_from(field, 1e3); }

std::string to_json(const Link& link) {
  return fmt::format(R"({{"bytes_per_s": {}, "latency_us": {}{}}})", link.bytes_per_s,
                     json_microseconds(link.latency_s),
                     link.core_share > 0 ? fmt::format(R"(, "core_share": {:.3f})", link.core_share) : "");
}

Link link_from_json(JsonReader field) {
  Link link;
  link.bytes_per_s = field.at("bytes_per_s").number();
  link.latency_s = seconds_from_us(field.at("latency_us"));
  if (field.has("core_share")) {
    const JsonReader share = field.at("core_share");
    link.core_share = share.number();
    if (link.core_share > 1) share.fail(fmt::format("{} is more than a whole core", link.core_share));
  }
  field.done();
  return link;
}

}  // namespace antichain
