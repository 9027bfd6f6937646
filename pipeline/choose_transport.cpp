#include "pipeline/choose_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "framework/backend.h"
#include "framework/error.h"
#include "pipeline/agree.h"
#include "pipeline/device_streams.h"
#include "pipeline/ordered_transport.h"
#include "pipeline/staged_transport.h"

namespace antichain {
namespace {

// Why the ranks can't use NCCL; "" when they can. The first reason found, by rank.
std::string against_nccl(const std::vector<WayFacts>& ranks) {
  std::map<std::pair<std::string, std::string>, size_t> owner;
  for (size_t r = 0; r < ranks.size(); ++r) {
    const WayFacts& facts = ranks[r];
    if (facts.device.empty()) return fmt::format("rank {} computes in host memory", r);
    if (facts.messages_by.empty()) return fmt::format("rank {} has no NCCL ({})", r, facts.no_messages);
    if (facts.messages_by != ranks[0].messages_by)
      return fmt::format("rank {} has {}, rank 0 {}", r, facts.messages_by, ranks[0].messages_by);
    const auto [at, alone] = owner.try_emplace({facts.host, facts.device}, r);
    if (!alone)
      return fmt::format("ranks {} and {} on {} share one GPU, which NCCL refuses", at->second, r,
                         facts.host);
  }
  return "";
}

// Facts travel as lines; none of them has a line break.
std::string to_text(const WayFacts& f) {
  return fmt::format("{}\n{}\n{}\n{}\n", f.host, f.device, f.messages_by, f.no_messages);
}
WayFacts facts_from_text(const std::string& text) {
  std::istringstream in(text);
  WayFacts f;
  for (std::string* line : {&f.host, &f.device, &f.messages_by, &f.no_messages}) std::getline(in, *line);
  return f;
}

}  // namespace

WayChoice choose_way(std::string_view asked, const std::vector<WayFacts>& ranks) {
  const std::string against = against_nccl(ranks);
  if (asked == "nccl" && !against.empty())
    throw Error(fmt::format("--transport nccl is asked for, but {}", against), "use --transport mpi, or auto",
                ExitCode::usage);
  const bool any_device = std::ranges::any_of(ranks, [](const WayFacts& f) { return !f.device.empty(); });
  if (!any_device) return {Way::as_it_is, ""};
  if (ranks.size() == 1 && asked != "nccl") return {Way::as_it_is, "tensors stay where they are: one rank"};
  if (asked == "mpi") return {Way::staged, "tensors travel through host memory (--transport mpi)"};
  if (!against.empty()) return {Way::staged, "tensors travel through host memory: " + against};
  return {Way::nccl,
          fmt::format("tensors travel from GPU to GPU by {}: every rank has its own", ranks[0].messages_by)};
}

ChosenTransport choose_transport(const Context& context, Transport& job, std::string_view asked) {
  const Backend& device = context.backend();
  const DeviceStreams* streams = device_streams(device.name());
  WayFacts mine{.host = job.host()};
  const DeviceMessages* messages = nullptr;
  if (streams) {
    mine.device = streams->device(context);
    messages = device_messages(device.name(), mine.no_messages);
    if (messages) mine.messages_by = messages->by;
  }
  const std::vector<std::string> texts = job.gather(to_text(mine));
  const std::string chosen = on_rank_zero(job, [&] {
    std::vector<WayFacts> ranks;
    for (const std::string& text : texts) ranks.push_back(facts_from_text(text));
    const WayChoice choice = choose_way(asked, ranks);
    return fmt::format("{}{}", int(choice.way), choice.sentence);
  });
  ChosenTransport result{.sentence = chosen.substr(1)};
  const Way way = Way(chosen[0] - '0');
  if (way == Way::nccl)
    result.own = make_ordered_transport(job, messages->make(context, job));
  else if (way == Way::staged && streams)
    result.own = make_staged_transport(job, streams->copies(context));
  return result;
}

}  // namespace antichain
