// This program answers schedule_ratios.py and asynchronous_rate.py: it times steps of one network under
// several schedules, which take turns. A machine that is faster or slower for a while is so for all of them.
//
//   mpirun -n 2 schedule_times MODEL PROFILE ROUNDS NAME …
//
// It reads NAME.plan.json and NAME.schedule, which `antichain plan --json` and `simulate --write-schedule`
// write, and prints {"NAME": [seconds of each round, …], …}.
// A step is timed from when all ranks are ready to when all are done; where the schedule has several in a
// row, it is the mean of these. It has a learning rate of 0 and random images, as in the profiler. NAME may
// be alone:NAME: then the ranks compute the same at the same time, but nothing is sent, and the step's time
// is that of the rank that is slowest at its own work. So the turn lasts as long as the one before, and each
// rank goes on until then.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "framework/error.h"
#include "framework/json.h"
#include "layers/cpu/backend.h"
#include "models/model.h"
#include "partition/plan/plan.h"
#include "partition/profile/read_profile.h"
#include "pipeline/host/seconds.h"
#include "pipeline/measure/bench.h"
#include "pipeline/program/weight_versions.h"
#include "pipeline/transport/mpi_transport.h"
#include "pipeline/transport/transport_over.h"

namespace antichain {
namespace {

// What is sent over it gets lost, and what is received has arrived.
class SilentTransport : public TransportOver {
 public:
  using TransportOver::TransportOver;
  void send(MessageKey, int, Tensor) override {}
  Ticket recv(MessageKey, int, Tensor) override { return 0; }
  void wait(Ticket) override {}
  bool arrived(Ticket) override { return true; }
  void flush() override {}
};

// A Contender is one rank's part of the network under one schedule.
class Contender {
 public:
  Contender(const std::string& name, bool alone, const Graph& graph, const Profile& profile, Context& context,
            JobTransport& job)
      : plan_(plan_from_json(read_file(name + ".plan.json"), name + ".plan.json", profile)),
        schedule_(parse_schedule(read_file(name + ".schedule"), name + ".schedule")),
        alone_(alone),
        job_(job),
        silent_(job),
        model_(graph, nodes_of_rank(plan_, job.rank()), context, 0, default_optimiser(), {},
               kept_versions(schedule_, plan_, job.rank())),
        runner_(model_, profile, plan_, schedule_, Mode::train,
                alone ? static_cast<Transport&>(silent_) : job),
        inputs_(size_t(schedule_.steps),
                {.batch = model_.graph().microbatch() * schedule_.microbatches_of_step(), .rate = 0}) {}

  // Returns the seconds of a step. `turn_s` are those that the turn before took, and then this one.
  double step_s(double& turn_s) {
    job_.barrier();
    const auto start = std::chrono::steady_clock::now();
    int rows = 0;
    do {
      runner_.begin(inputs_, source_);
      for (size_t i = 0; i < inputs_.size(); ++i) runner_.finish();
      ++rows;
    } while (alone_ && seconds_since(start) < turn_s);
    double slowest_s = 0;
    for (const std::string& own_s : job_.gather(fmt::format("{}", seconds_since(start) / rows)))
      slowest_s = std::max(slowest_s, std::stod(own_s));  // on rank 0
    job_.barrier();
    turn_s = seconds_since(start);
    return (alone_ ? slowest_s : turn_s) / schedule_.steps;
  }

 private:
  const Plan plan_;
  const Schedule schedule_;
  const bool alone_;
  JobTransport& job_;
  SilentTransport silent_;
  RankModel model_;
  StageRunner runner_;
  std::vector<StepInput> inputs_;
  RandomSource source_;
};

void run(JobTransport& job, const std::string& model, const std::string& profile_file, int rounds,
         const std::vector<std::string>& names) {
  register_cpu_backend();
  const Backend& device = backend("cpu");
  Context context(device, 1, job.local_rank());
  device.enter(context);
  const Profile profile = read_profile(read_file(profile_file), profile_file);
  const Graph graph = lower(make_model(model, {.microbatch = profile.microbatch}), device);
  if (unpriced(graph, device.description()).graph_hash != profile.graph_hash)
    throw Error(profile_file + " is of another network than " + model, "measure it anew");
  std::deque<Contender> contenders;
  constexpr std::string_view alone = "alone:";
  for (const std::string& name : names) {
    const bool silent = name.starts_with(alone);
    contenders.emplace_back(silent ? name.substr(alone.size()) : name, silent, graph, profile, context, job);
  }
  nlohmann::json seconds;
  double turn_s = 0;
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < names.size(); ++i) seconds[names[i]].push_back(contenders[i].step_s(turn_s));
  if (job.rank() == 0) fmt::print("{}\n", seconds.dump());
}

}  // namespace
}  // namespace antichain

int main(int argc, char** argv) {
  if (argc < 5) {
    fmt::print(stderr, "usage: mpirun -n RANKS {} MODEL PROFILE ROUNDS NAME …\n", argv[0]);
    return 2;
  }
  antichain::MpiSession session(300);
  try {
    antichain::run(session.transport(), argv[1], argv[2], std::stoi(argv[3]), {argv + 4, argv + argc});
  } catch (const std::exception& error) {
    session.end_job(error.what(), 1);
  }
}
