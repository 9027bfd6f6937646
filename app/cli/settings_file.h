// A settings file is TOML with names that have one value each, bare or in sections.
#pragma once

#include <string>
#include <vector>

namespace antichain {

struct Setting {
  enum class Kind { text, number, truth };
  std::string name, value;  // the value as a command line has it
  Kind kind = Kind::text;
  int line = 0;
};

struct SettingsSection {
  std::vector<std::string>
      path;  // {"data", "pack"} for [data.pack]; empty for what stands above all sections
  int line = 0;
  std::vector<Setting> settings;  // by line
};

// Returns the sections by line. Throws Error naming `file` and the line where the text is no TOML, or a value
// is a list or a date.
std::vector<SettingsSection> parse_settings_file(const std::string& text, const std::string& file);

}  // namespace antichain
