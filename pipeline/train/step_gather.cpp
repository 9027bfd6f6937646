#include "pipeline/train/step_gather.h"

#include <fmt/format.h>

#include <cstdlib>
#include <sstream>
#include <string>

namespace antichain {

void StepResults::tell(const StepResult& mine, double busy_s) {
  job_.post(0, fmt::format("{} {} {}\n{}\n{}", mine.loss, mine.correct, busy_s, to_text(mine.numbers),
                           boundary_.status()));
}

Gathered StepResults::take() {
  Gathered all;
  for (int rank = 0; job_.rank() == 0 && rank < job_.size(); ++rank) {
    std::istringstream in(job_.take(rank));
    std::string loss, correct, numbers, status;  // a stream reads no "nan" as a number
    in >> loss >> correct >> all.busy_s.emplace_back() >> std::ws;
    std::getline(in, numbers);
    std::getline(in, status, '\0');
    boundary_.take_status(rank, status);
    all.sum.loss += std::strtod(loss.c_str(), nullptr);
    all.sum.correct += std::strtod(correct.c_str(), nullptr);
    all.numbers.push_back(report_from_text(numbers));
  }
  return all;
}

std::vector<Event> gather_events(Job& job, const Schedule& schedule, const std::vector<Event>& mine) {
  std::string times;
  for (const Event& e : mine) times += fmt::format("{} {}\n", e.start_s, e.end_s);
  std::vector<Event> all;
  const auto texts = job.gather(times);
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    std::istringstream in(texts[rank]);
    for (const Action& action : schedule.ranks[rank]) {
      Event e{.rank = int(rank), .action = action};
      in >> e.start_s >> e.end_s;
      all.push_back(e);
    }
  }
  return all;
}

}  // namespace antichain
