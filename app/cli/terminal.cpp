#include "app/cli/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "app/cli/output_file.h"
#include "app/cli/table.h"
#include "pipeline/host/launch.h"

namespace antichain {
namespace {

constexpr int usual_columns = 80, least_columns = 40, most_columns = 1000;

int columns_of(int file) {
  winsize size{};
  if (isatty(file) != 1) return 0;
  return ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual_columns;
}

// A stream without a descriptor stands for the program's output (app/cli/output_file.h).
int number_of(std::FILE* out) { return ::fileno(out) < 0 ? printing_descriptor() : ::fileno(out); }

int columns_through_launcher(int file) {
  if (columns_of(file) == 0 || !launched_in_parallel()) return columns_of(file);
  const std::string its_file = fmt::format("/proc/{}/fd/{}", ::getppid(), file);
  const int launcher = ::open(its_file.c_str(), O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (launcher < 0) return 0;
  const int columns = columns_of(launcher);
  ::close(launcher);
  return columns;
}

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool has_colours(bool terminal) {
  if (!variable("NO_COLOR").empty()) return false;
  if (const std::string_view force = variable("CLICOLOR_FORCE"); !force.empty() && force != "0") return true;
  const std::string_view kind = variable("TERM");
  return terminal && variable("CLICOLOR") != "0" && !kind.empty() && kind != "dumb";
}

// The codes are those of ECMA-48, "Select Graphic Rendition".
const char* code(Style style) {
  switch (style) {
    case Style::plain:
      return "";
    case Style::heading:
      return "1";
    case Style::good:
      return "1;32";
    case Style::doubtful:
      return "1;33";
    case Style::bad:
      return "1;31";
  }
  return "";
}

std::string styled(Style style, const std::string& text, bool terminal) {
  if (style == Style::plain || text.empty() || !has_colours(terminal)) return text;
  return fmt::format("\x1b[{}m{}\x1b[0m", code(style), text);
}

}  // namespace

int terminal_columns(std::FILE* out) { return columns_through_launcher(number_of(out)); }

int columns_of_standard_error() { return columns_through_launcher(STDERR_FILENO); }

size_t text_columns() {
  int columns = terminal_columns(stdout);
  if (columns == 0) columns = std::atoi(std::string(variable("COLUMNS")).c_str());
  return size_t(columns <= 0 ? usual_columns : std::clamp(columns, least_columns, most_columns));
}

std::string styled(Style style, const std::string& text) {
  return styled(style, text, terminal_columns(stdout) > 0);
}

std::string styled_on_standard_error(Style style, const std::string& text) {
  return styled(style, text, columns_of_standard_error() > 0);
}

namespace {

constexpr size_t continued_indent = 2;

std::string coloured_head(Tone tone) {
  const std::string name = "antichain:";
  if (tone == Tone::error) return styled_on_standard_error(Style::bad, name);
  if (tone == Tone::note) return name;
  return name + " " + styled_on_standard_error(Style::doubtful, "warning:");
}

}  // namespace

std::string shaped(Tone tone, const std::string& sentence) {
  const std::string head = tone == Tone::warning ? "antichain: warning:" : "antichain:";
  const size_t end = std::min(sentence.find('\n'), sentence.size());
  std::string text = head + " " + sentence.substr(0, end) + "\n";
  if (const int columns = columns_of_standard_error(); columns > 0)
    text = hanging("", continued_indent, text, size_t(columns)).substr(continued_indent);
  return coloured_head(tone) + text.substr(head.size()) +
         (end == sentence.size() ? "" : sentence.substr(end + 1) + "\n");
}

}  // namespace antichain
