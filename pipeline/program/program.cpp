#include "pipeline/program/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace antichain {
namespace {

std::string_view suffix(Content content) {
  switch (content) {
    case Content::stash:
      return ".stash";
    case Content::gradient:
      return ".gradient";
    case Content::term:
      return ".term";
    case Content::weight:
      return ".weight";
    case Content::input:
    case Content::output:
    case Content::received:
    case Content::statistics:
      break;
  }
  return "";
}

// Returns the copies that an instruction reads or writes, as words after `verb`.
std::string operands(std::string_view verb, std::span<const BufferId> ids, const Instruction& of,
                     const RankProgram& rank, const StepNetwork& network) {
  if (ids.empty()) return "";
  std::vector<std::string> names;
  for (const BufferId id : ids) {
    const Buffer& buffer = rank.buffers[size_t(id)];
    std::string& name = names.emplace_back(buffer.node < 0 ? "statistics"
                                                           : network[size_t(buffer.node)].name +
                                                                 std::string(suffix(buffer.content)));
    if (of.microbatch >= 0) name += fmt::format("[{}]", of.microbatch / buffer.replicas % buffer.copies);
  }
  return fmt::format("  {} {}", verb, fmt::join(names, " "));
}

std::string words(const WeightVersion& of) {
  if (of.ahead == 0) return of.behind > 0 ? fmt::format("  weights {} back", of.behind) : "";
  return fmt::format("  weights {} back, {} ahead", of.behind, of.ahead);
}

}  // namespace

std::string print(const Program& program, const StepNetwork& network) {
  std::string text;
  for (size_t r = 0; r < program.ranks.size(); ++r) {
    const RankProgram& rank = program.ranks[r];
    text += fmt::format("rank {}\n", r);
    for (const Instruction& i : rank.instructions)
      text += fmt::format("  {}{}{}{}\n", print(static_cast<const Action&>(i)), words(i.weights),
                          operands("reads", i.reads, i, rank, network),
                          operands("writes", i.writes, i, rank, network));
  }
  return text;
}

}  // namespace antichain
