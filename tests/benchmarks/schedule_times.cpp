// This program answers schedule_ratios.py: it times steps of one network under several schedules, which take
// turns. A machine that is faster or slower for a while is so for all of them.
//
//   mpirun -n 2 schedule_times MODEL PROFILE ROUNDS NAME …
//
// It reads NAME.plan.json and NAME.schedule, which `antichain plan --json` and `simulate --write-schedule`
// write, and prints {"NAME": [seconds of each round, …], …}.
// A step is timed from when all ranks are ready to when all are done. It has a learning rate of 0
// and random images, as in the profiler.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/error.h"
#include "framework/json.h"
#include "layers/cpu/backend.h"
#include "models/model.h"
#include "partition/plan/plan.h"
#include "partition/profile/read_profile.h"
#include "pipeline/host/seconds.h"
#include "pipeline/measure/bench.h"
#include "pipeline/transport/mpi_transport.h"

namespace antichain {
namespace {

// A Contender is one rank's part of the network under one schedule.
class Contender {
 public:
  Contender(const std::string& name, const Graph& graph, const Profile& profile, Context& context,
            JobTransport& job)
      : plan_(plan_from_json(read_file(name + ".plan.json"), name + ".plan.json", profile)),
        schedule_(parse_schedule(read_file(name + ".schedule"), name + ".schedule")),
        job_(job),
        model_(graph, nodes_of_rank(plan_, job.rank()), context, 0),
        runner_(model_, profile, plan_, schedule_, Mode::train, job) {}

  double step_s() {
    job_.barrier();
    const auto start = std::chrono::steady_clock::now();
    runner_.run({.batch = model_.graph().microbatch() * schedule_.microbatches, .rate = 0}, source_);
    job_.barrier();
    return seconds_since(start);
  }

 private:
  const Plan plan_;
  const Schedule schedule_;
  JobTransport& job_;
  RankModel model_;
  StageRunner runner_;
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
  for (const std::string& name : names) contenders.emplace_back(name, graph, profile, context, job);
  nlohmann::json seconds;
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < names.size(); ++i) seconds[names[i]].push_back(contenders[i].step_s());
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
