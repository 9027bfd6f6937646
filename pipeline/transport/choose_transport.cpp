#include "pipeline/transport/choose_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "framework/backend.h"
#include "framework/error.h"
#include "pipeline/device/device_streams.h"
#include "pipeline/transport/agree.h"
#include "pipeline/transport/joint_attempt.h"
#include "pipeline/transport/mixed_transport.h"
#include "pipeline/transport/ordered_transport.h"
#include "pipeline/transport/peer_transport.h"
#include "pipeline/transport/staged_transport.h"

namespace antichain {
namespace {

// Facts travel as lines; none of them has a line break.
std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}
std::string flag(bool set) { return set ? "yes" : ""; }

std::string to_text(const WayFacts& f) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n", f.host, f.device, f.messages_by, one_line(f.no_messages),
                     flag(f.peers), f.process);
}
WayFacts facts_from_text(const std::string& text) {
  std::istringstream in(text);
  WayFacts f;
  std::string peers;
  for (std::string* line : {&f.host, &f.device, &f.messages_by, &f.no_messages, &peers, &f.process})
    std::getline(in, *line);
  f.peers = !peers.empty();
  return f;
}

std::string to_text(const Ways& w) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n", flag(w.copies), flag(w.messages), w.no_copies,
                     w.no_messages, w.messages_by, w.without, flag(w.as_it_is));
}
Ways ways_from_text(const std::string& text) {
  std::istringstream in(text);
  Ways w;
  std::string copies, messages, as_it_is;
  for (std::string* line :
       {&copies, &messages, &w.no_copies, &w.no_messages, &w.messages_by, &w.without, &as_it_is})
    std::getline(in, *line);
  w.copies = !copies.empty(), w.messages = !messages.empty(), w.as_it_is = !as_it_is.empty();
  return w;
}

// Messages between this rank and those that it can't copy to.
struct Connected {
  std::unique_ptr<MessageStream> messages;
  std::string failure;  // on every rank, of the first one that failed: nobody has any then
};

Connected connect(const DeviceMessages& offer, const Context& context, Transport& below,
                  const PeerPairs* pairs) {
  Job& job = below.job();
  std::vector<int> peers;
  for (int peer = 0; peer < job.size(); ++peer)
    if (peer != job.rank() && !(pairs && pairs->direct(job.rank(), peer))) peers.push_back(peer);
  Connected made;
  std::string mine;
  JointAttempt attempt(below);
  try {
    made.messages = offer.make(context, below.job(), peers, [&] { attempt.look(); });
  } catch (const JointAttempt::OthersFailed&) {
  } catch (const Error& error) {
    job.check_job();  // else the others never come to compare
    mine = fmt::format("rank {} on {} found NCCL unable: {}", job.rank(), job.host(), one_line(error.what()));
  }
  if (attempt.all_succeeded(made.messages != nullptr)) return made;
  const std::vector<std::string> all = job.gather(mine);
  const auto first = std::ranges::find_if(all, [](const std::string& why) { return !why.empty(); });
  made.failure = job.broadcast(first == all.end() ? "" : *first);
  if (made.messages) made.messages->give_up();
  made.messages = nullptr;
  return made;
}

WayFacts facts_of(const Context& context, const Job& job, std::string_view asked,
                  const DeviceMessages*& messages) {
  WayFacts mine{.host = job.host()};
  const DeviceStreams* streams = device_streams(context.backend().name());
  if (!streams) return mine;
  mine.device = streams->device(context);
  mine.peers = bool(streams->peers);
  if (streams->process) mine.process = streams->process();
  if (asked == "auto" || asked == "nccl")
    messages = device_messages(context.backend().name(), mine.no_messages);
  if (messages) mine.messages_by = messages->by;
  return mine;
}

}  // namespace

std::string ChosenTransport::way() const { return sentence.substr(0, sentence.find(": ")); }

ChosenTransport choose_transport(const Context& context, Transport& below, std::string_view asked) {
  Job& job = below.job();
  const DeviceMessages* offer = nullptr;
  const std::vector<std::string> texts = job.gather(to_text(facts_of(context, job, asked, offer)));
  const Ways ways = ways_from_text(on_rank_zero(job, [&] {
    std::vector<WayFacts> ranks;
    for (const std::string& text : texts) ranks.push_back(facts_from_text(text));
    return to_text(ways_to_try(asked, ranks));
  }));
  const DeviceStreams* streams = device_streams(context.backend().name());
  std::unique_ptr<PeerStream> peers;
  std::optional<PeerPairs> pairs;
  if (ways.copies) {
    peers = streams->peers(context);
    pairs.emplace(find_pairs(job, *peers));
  }
  const PeerPairs* const tried = pairs ? &*pairs : nullptr;
  Connected connected;
  if (ways.messages && !(tried && tried->all())) connected = connect(*offer, context, below, tried);
  const WayChoice choice = choose_way(asked, ways, tried, connected.failure);
  const bool copies = choice.way == Way::copies || choice.way == Way::copies_and_messages;
  if (peers && !copies) {
    peers->close();
    job.barrier();
    peers->all_closed();
  }
  ChosenTransport result{.own = nullptr, .sentence = choice.sentence};
  std::unique_ptr<CopyingTransport> near;
  if (copies) near = make_peer_transport(below, std::move(peers), streams->copies(context), *pairs);
  if (choice.way == Way::copies_and_messages)
    result.own = make_mixed_transport(below, std::move(near),
                                      make_ordered_transport(below, std::move(connected.messages)), *pairs);
  else if (choice.way == Way::copies)
    result.own = std::move(near);
  else if (choice.way == Way::messages)
    result.own = make_ordered_transport(below, std::move(connected.messages));
  else if (choice.way == Way::staged && streams)
    result.own = make_staged_transport(below, streams->copies(context));
  return result;
}

}  // namespace antichain
