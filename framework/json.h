// Reads and writes the files that people edit (profiles, plans). Reading is strict. A file is written whole
// or not at all.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace antichain {

constexpr size_t most_json_depth = 64;  // of arrays and objects within each other

// Throws Error with origin and line on malformed text, a duplicate key (which the parser alone would accept),
// or arrays and objects that are nested more deeply than any of our files.
nlohmann::json parse_json(const std::string& text, const std::string& origin);

// A JsonReader is a view of one JSON object that checks as it reads: errors name the origin and the path of
// the field ("plan.json: stages[1].nodes: …"). `done()` refuses fields that the caller has not read.
class JsonReader {
 public:
  JsonReader(const nlohmann::json& value, std::string origin, std::string path = {});

  JsonReader at(const std::string& key);  // Error when absent
  bool has(const std::string& key) const;
  std::vector<JsonReader> elements() const;  // Error when it is no array
  bool is_string() const;
  bool is_array() const;
  bool is_object() const;
  std::string string() const;
  double number(double minimum = 0) const;  // Error when below or not finite
  int64_t integer(int64_t minimum = 0, int64_t maximum = INT64_MAX) const;
  bool boolean() const;
  void done() const;
  [[noreturn]] void fail(const std::string& why) const;

 private:
  const nlohmann::json* value_;
  std::string origin_, path_;
  std::vector<std::string> asked_;
};

// Throws Error naming the path and the system's reason.
std::string read_file(const std::string& path);
// Writes beside the target, syncs and renames: the target is the old file or the new one, never a part.
void write_file(const std::string& path, const std::string& text);

}  // namespace antichain
