#include "app/cli/sentences.h"

#include "app/cli/table.h"
#include "app/cli/terminal.h"

namespace antichain {
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
