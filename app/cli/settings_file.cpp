#include "app/cli/settings_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "framework/error.h"

// The TOML parser's assertions fail on odd texts ("[[[a]]"), and with NDEBUG it runs on without them. So they
// are on in every build, and a failed assertion refuses the file instead of aborting.
#undef NDEBUG
#define TOML_ASSERT(condition) ((condition) ? void(0) : antichain::toml_check_failed(#condition))
namespace antichain {
[[noreturn]] static void toml_check_failed(const char* condition) { throw std::logic_error(condition); }
}  // namespace antichain
#include <toml++/toml.h>

namespace antichain {
namespace {

int line_of(const toml::source_region& source) { return int(source.begin.line); }

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  void read(const toml::table& table, std::vector<std::string> path, int line) {
    SettingsSection section{.path = path, .line = line, .settings = {}};
    for (const auto& [key, value] : table) {
      const std::string name(key.str());
      if (const toml::table* below = value.as_table()) {
        std::vector<std::string> longer = path;
        longer.push_back(name);
        read(*below, std::move(longer), line_of(key.source()));
      } else {
        section.settings.push_back(setting(name, value, line_of(key.source())));
      }
    }
    std::ranges::sort(section.settings, {}, &Setting::line);
    // [data.pack] makes a table "data" as well, which has no settings.
    const bool mere_parent = section.settings.empty() && !table.empty();
    if (!mere_parent) sections.push_back(std::move(section));
  }

  std::vector<SettingsSection> sections;

 private:
  Setting setting(const std::string& name, const toml::node& value, int line) const {
    if (const auto* text = value.as_string()) return {name, text->get(), Setting::Kind::text, line};
    if (const auto* truth = value.as_boolean())
      return {name, truth->get() ? "true" : "false", Setting::Kind::truth, line};
    if (const auto* whole = value.as_integer())
      return {name, std::to_string(whole->get()), Setting::Kind::number, line};
    if (const auto* number = value.as_floating_point())
      return {name, fmt::format("{}", number->get()), Setting::Kind::number, line};
    throw Error(fmt::format("{}:{}: '{}' must have one value", file_, line, name),
                "a text in quotes, a number, true or false");
  }

  const std::string& file_;
};

[[noreturn]] void refuse(const std::string& file, int line, const std::string& why) {
  throw Error(fmt::format("{}:{}: this is no settings file in TOML ({})", file, line, why),
              "write lines of the form name = value, and texts in quotes");
}

// Lets through only the TOML that settings need: [section] or name = value on each line. Debian's toml++ 3.3
// takes for granted, in is_non_ascii_horizontal_whitespace(), that certain characters never reach it. It asks
// that function about characters outside quotes, in texts of several lines, and in what follows a malformed
// number. So text that is not ASCII may stand only in comments and in quotes that open where a name or the
// value of a line begins.
void check_characters(const std::string& text, const std::string& file) {
  const size_t begin = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;  // UTF-8's byte order mark
  int line = 1;
  char quote = 0, before = '\n';  // '#': in a comment; the last character that is no blank
  enum class Part { name, value, inline_table } part = Part::name;
  for (size_t i = begin; i < text.size(); ++i) {
    const char c = text[i];
    const bool ascii = (c & 0x80) == 0;
    if (c == '\n') {
      ++line;
      quote = 0;
      part = Part::name;
    } else if (!ascii && quote != '#' && (quote == 0 || part == Part::inline_table)) {
      refuse(file, line,
             quote == 0 ? "a character outside quotes that is not ASCII"
                        : "in an inline table, characters that are not ASCII need \\u and four digits");
    } else if (quote != 0) {
      if (quote == '"' && c == '\\' && i + 1 < text.size() && text[i + 1] != '\n') ++i;
      if (c == quote && c != '#') quote = 0;
    } else if (c == '#') {
      quote = c;
    } else if (c == '"' || c == '\'') {
      if (text.compare(i, 3, std::string(3, c)) == 0) refuse(file, line, "a text of several lines");
      constexpr std::string_view opens[] = {"\n.[", "=", "=,.{"};
      if (opens[size_t(part)].find(before) == std::string_view::npos)
        refuse(file, line, "a quote where no text begins");
      quote = c;
    } else if (part == Part::value && (c == '=' || c == '[')) {
      refuse(file, line, c == '=' ? "a second '=' on the line" : "a list where one value belongs");
    } else if (c == '=' && part == Part::name) {
      part = Part::value;
    } else if (c == '{' && part == Part::value) {
      part = Part::inline_table;
    }
    if (c != ' ' && c != '\t' && c != '\r') before = c;
  }
}

}  // namespace

std::vector<SettingsSection> parse_settings_file(const std::string& text, const std::string& file) {
  check_characters(text, file);
  Reader reader(file);
  try {
    reader.read(toml::parse(text, file), {}, 1);
  } catch (const toml::parse_error& error) {
    refuse(file, line_of(error.source()), std::string(error.description()));
  } catch (const std::logic_error&) {
    throw Error(file + ": this is no settings file in TOML",
                "look for brackets and quotes that do not match");
  }
  std::ranges::stable_sort(reader.sections, {}, &SettingsSection::line);
  return std::move(reader.sections);
}

}  // namespace antichain
