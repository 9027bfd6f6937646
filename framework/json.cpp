#include "framework/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "framework/bounded_file.h"
#include "framework/error.h"
#include "framework/new_file.h"

namespace antichain {

using nlohmann::json;

namespace {

// Finds a key that stands twice in one object, and too deep a nesting, whose values would take a hundred
// times the memory of their text. It takes a pass of its own over the text, because the parser with a
// callback needs time that is quadratic in the length of an array.
class Objections : public nlohmann::json_sax<json> {
 public:
  std::string found, hint;  // what is wrong, or ""

  bool key(std::string& key) override {
    if (keys_.back().insert(key).second) return true;
    found = fmt::format("the key \"{}\" stands twice in one object", key), hint = "remove one";
    return false;
  }
  bool start_object(size_t) override { return keys_.emplace_back(), deeper(); }
  bool end_object() override { return keys_.pop_back(), --depth_, true; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(json::binary_t&) override { return true; }
  bool start_array(size_t) override { return deeper(); }
  bool end_array() override { return --depth_, true; }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  bool deeper() {
    if (++depth_ <= most_json_depth) return true;
    found = fmt::format("more than {} arrays and objects lie within each other", most_json_depth);
    hint = "is it the right file?";
    return false;
  }

  std::vector<std::set<std::string>> keys_;  // of the objects we are inside
  size_t depth_ = 0;
};

}  // namespace

json parse_json(const std::string& text, const std::string& origin) {
  Objections objections;
  json::sax_parse(text, &objections);
  if (!objections.found.empty())
    throw Error(fmt::format("{}: {}", origin, objections.found), objections.hint);
  json value;
  try {
    value = json::parse(text);
  } catch (const json::parse_error& error) {
    const auto until =
        text.begin() + std::min<std::ptrdiff_t>(std::ptrdiff_t(error.byte), std::ptrdiff_t(text.size()));
    const auto line = 1 + std::count(text.begin(), until, '\n');
    throw Error(fmt::format("{}:{}: this is no valid JSON", origin, line),
                text.empty() ? "the file is empty"
                             : "look for a missing comma, quote or bracket there or just before");
  } catch (const json::out_of_range&) {
    throw Error(fmt::format("{}: a number is too large for a double", origin), "write a finite number");
  }
  return value;
}

JsonReader::JsonReader(const json& value, std::string origin, std::string path)
    : value_(&value), origin_(std::move(origin)), path_(std::move(path)) {}

void JsonReader::fail(const std::string& why) const {
  throw Error(fmt::format("{}: {}: {}", origin_, path_.empty() ? "top level" : path_, why));
}

bool JsonReader::has(const std::string& key) const { return value_->is_object() && value_->contains(key); }

JsonReader JsonReader::at(const std::string& key) {
  if (!value_->is_object()) fail("an object {…} is expected here");
  if (!value_->contains(key)) fail(fmt::format("the field \"{}\" is missing", key));
  asked_.push_back(key);
  return {(*value_)[key], origin_, path_.empty() ? key : path_ + "." + key};
}

std::vector<JsonReader> JsonReader::elements() const {
  if (!value_->is_array()) fail("an array […] is expected here");
  std::vector<JsonReader> all;
  for (size_t i = 0; i < value_->size(); ++i)
    all.emplace_back((*value_)[i], origin_, fmt::format("{}[{}]", path_, i));
  return all;
}

bool JsonReader::is_string() const { return value_->is_string(); }
bool JsonReader::is_array() const { return value_->is_array(); }
bool JsonReader::is_object() const { return value_->is_object(); }

std::string JsonReader::string() const {
  if (!value_->is_string()) fail("a string is expected here");
  return value_->get<std::string>();
}

double JsonReader::number(double minimum) const {
  if (!value_->is_number()) fail("a number is expected here");
  const double x = value_->get<double>();
  if (!std::isfinite(x) || x < minimum)
    fail(fmt::format("{} is not a finite number of at least {}", x, minimum));
  return x + 0.0;  // −0 becomes 0
}

int64_t JsonReader::integer(int64_t minimum, int64_t maximum) const {
  if (!value_->is_number_integer()) fail("an integer is expected here");
  const bool too_large = value_->is_number_unsigned() && value_->get<uint64_t>() > uint64_t(INT64_MAX);
  const int64_t x = too_large ? INT64_MAX : value_->get<int64_t>();
  if (x < minimum || x > maximum || too_large)
    fail(fmt::format("{} is outside {} to {}", value_->dump(), minimum, maximum));
  return x;
}

bool JsonReader::boolean() const {
  if (!value_->is_boolean()) fail("true or false is expected here");
  return value_->get<bool>();
}

void JsonReader::done() const {
  for (const auto& [key, unused] : value_->items())
    if (std::find(asked_.begin(), asked_.end(), key) == asked_.end())
      fail(fmt::format("unknown field \"{}\"", key));
}

std::string read_file(const std::string& path) { return read_bounded(path, most_text_bytes); }

void write_file(const std::string& path, const std::string& text) {
  NewFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace antichain
