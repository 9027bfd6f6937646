#include "app/job/agreement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "framework/backend.h"
#include "framework/say.h"
#include "layers/cpu/cpu_isa.h"
#include "pipeline/host/launch.h"
#include "pipeline/transport/agree.h"

namespace antichain {
namespace {

constexpr const char* graph_fact = "the network's graph";

std::string kernel_advice(const std::string& name, const std::vector<std::string>& values) {
  const std::string common = common_cpu_isa(values);
  if (!common.empty())
    return fmt::format("start every rank with --cpu-isa {}, which all of them have", common);
  if (name == graph_fact) return "start the same program with the same options and data on every host";
  return "install the same libraries on every host, and give every rank the same environment";
}

// The kernels are the same, but oneDNN and cuDNN may divide work differently for another cache size.
void warn_of_other_processors(const Rank& rank) {
  const auto all = rank.job.gather(rank.context.backend().description());
  if (!rank.prints()) return;
  const std::string odd = describe_odd(all, "computes on", "compute on");
  if (!odd.empty()) warn(odd + ": the last bits of the numbers may depend on where the network is cut");
}

// Cheap facts come first: data of different size also have different hashes.
Held data_facts(const DataSplits& data) {
  const DataSet &train = *data.train, &test = *data.test;
  Held facts = {{"the data set", train.name()}};
  for (const auto& [name, value] : train.form()) facts.emplace_back(name, value);
  facts.emplace_back("the number of training images", std::to_string(train.size()));
  facts.emplace_back("the number of test images", std::to_string(test.size()));
  facts.emplace_back("the hash of the training images and labels", fmt::format("{:016x}", train.contents()));
  facts.emplace_back("the hash of the test images and labels", fmt::format("{:016x}", test.contents()));
  return facts;
}

}  // namespace

void check_same_data(const Rank& rank, const DataSplits& data, const std::string& where) {
  if (!launched_in_parallel()) return;
  rank.job.activity().doing("hashing the data, to compare it with that of the other ranks");
  agree(rank.job, data_facts(data), [&](const auto&, const auto&) {
    return fmt::format("put the same data at {} on every host", where);
  });
}

void check_same_kernels(const Rank& rank, const MachineOptions& machine, const Graph& lowered) {
  Held held = rank.context.backend().chooses_by();
  held.emplace_back("the number of threads", std::to_string(rank.context.threads()));
  held.emplace_back(graph_fact, lowered.hash());
  agree(rank.job, held, kernel_advice);
  warn_of_other_processors(rank);
  if (rank.prints() && machine.cpu_isa != "auto")
    fmt::print("Every rank uses the instructions {} (--cpu-isa {})\n", cpu_isa(), machine.cpu_isa);
}

}  // namespace antichain
