#include "pipeline/transport/choose_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

#include "framework/backend.h"
#include "framework/error.h"
#include "pipeline/device/device_streams.h"
#include "pipeline/transport/agree.h"
#include "pipeline/transport/joint_attempt.h"
#include "pipeline/transport/ordered_transport.h"
#include "pipeline/transport/staged_transport.h"

namespace antichain {
namespace {

// Facts travel as lines; none of them has a line break.
std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::string to_text(const WayFacts& f) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n", f.host, f.device, f.messages_by, one_line(f.no_messages),
                     f.process);
}
WayFacts facts_from_text(const std::string& text) {
  std::istringstream in(text);
  WayFacts f;
  for (std::string* line : {&f.host, &f.device, &f.messages_by, &f.no_messages, &f.process})
    std::getline(in, *line);
  return f;
}

std::string to_text(const WayChoice& choice) {
  return fmt::format("{} {}", int(choice.way), choice.sentence);
}
WayChoice choice_from_text(const std::string& text) { return {Way(text.at(0) - '0'), text.substr(2)}; }

struct Connected {
  std::unique_ptr<MessageStream> messages;
  std::string failure;  // on every rank, of the first one that failed: nobody has any then
};

Connected connect(const DeviceMessages& offer, const Context& context, Transport& below) {
  Job& job = below.job();
  Connected made;
  std::string mine;
  JointAttempt attempt(below);
  try {
    made.messages = offer.make(context, job, [&] { attempt.look(); });
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
  mine.process = streams->process();
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
  WayChoice choice = choice_from_text(on_rank_zero(job, [&] {
    std::vector<WayFacts> ranks;
    for (const std::string& text : texts) ranks.push_back(facts_from_text(text));
    return to_text(choose_way(asked, ranks));
  }));
  Connected connected;
  if (choice.way == Way::messages) {
    connected = connect(*offer, context, below);
    if (!connected.messages) choice = way_without_messages(asked, connected.failure);
  }
  ChosenTransport result{.own = nullptr, .sentence = choice.sentence};
  const DeviceStreams* streams = device_streams(context.backend().name());
  if (choice.way == Way::messages)
    result.own = make_ordered_transport(below, std::move(connected.messages));
  else if (choice.way == Way::staged && streams)
    result.own = make_staged_transport(below, streams->copies(context));
  return result;
}

}  // namespace antichain
