// Weights are shared among ranks that are threads: every stage gets its own tensors of one file, and all
// stages together give the file back.
#include "pipeline/train/weights_io.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <mutex>

#include "layers/cpu/backend.h"
#include "models/model.h"
#include "pipeline/transport/thread_transport.h"
#include "tests/expect_error.h"

namespace antichain {
namespace {

// A file that is gone when the test ends.
class TemporaryFile {
 public:
  explicit TemporaryFile(const Weights& weights, WeightFormat format)
      : path_(::testing::TempDir() + "/antichain_weights_io_" + std::to_string(::getpid())) {
    write_weights(path_, weights, format);
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Gives every rank a stage of neighbouring nodes, drawn with seed 1.
void on_stages(int ranks, const std::function<void(RankModel&, Job&)>& work, int classes = 10) {
  register_cpu_backend();
  const Backend& cpu = backend("cpu");
  run_ranks(ranks, [&](JobTransport& job) {
    Context context(cpu);
    cpu.enter(context);
    const Graph graph = lower(make_model("resnet20", {.microbatch = 2, .classes = classes}), cpu);
    std::vector<NodeId> nodes;
    for (NodeId id = 0; id < graph.size(); ++id)
      if (graph[id].role() != Role::input && id * ranks / graph.size() == job.rank()) nodes.push_back(id);
    RankModel model(graph, nodes, context, 1);
    work(model, job);
  });
}

// By name: a stage has the order of the graph it runs, whose fused nodes come later than in the model.
void expect_same(const Weights& got, const Weights& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (const NamedTensor& tensor : got) {
    const NamedTensor* other = expected.find(tensor.name);
    EXPECT_TRUE(other && tensor == *other) << tensor.name;
  }
}

// Weights with a batch count other than 0, so that it shows whether it was read.
Weights trained() {
  Weights result;
  for (NamedTensor tensor : initial_weights(make_model("resnet20", {.microbatch = 2}), 99)) {
    if (!tensor.is_float()) tensor.values = std::vector<int64_t>{1234};
    result.add(std::move(tensor));
  }
  return result;
}

TEST(WeightsIo, InitialWeightsAreThoseOfAStage) {
  const Weights expected = initial_weights(make_model("resnet20", {.microbatch = 2}), 1);
  on_stages(1, [&](RankModel& model, Job&) { expect_same(weights_of(model), expected); });
}

TEST(WeightsIo, EveryStageLoadsItsOwnAndAllGiveTheFileBack) {
  const Weights given = trained();
  for (const WeightFormat format : {WeightFormat::hdf5, WeightFormat::safetensors}) {
    const TemporaryFile file(given, format);
    for (const int ranks : {1, 2, 3}) {
      on_stages(ranks, [&](RankModel& model, Job& job) {
        const Weights shared = broadcast_weights(file.path(), model.graph(), job);
        EXPECT_TRUE(load_weights(model, shared, Fit::whole, file.path()).empty());
        const Weights all = gather_weights(model, job);
        expect_same(all, job.rank() == 0 ? given : Weights());
      });
    }
  }
}

TEST(WeightsIo, APartialLoadListsTheSameOnEveryRankAndKeepsTheRest) {
  Weights given;
  for (const NamedTensor& tensor : trained())
    if (tensor.name != "layer2.0.conv1.weight") given.add(tensor);
  given.add({"extra", {}, std::vector<float>{1}});
  const std::vector<std::string> expected = {"'layer2.0.conv1.weight' is not in the file",
                                             "'fc.weight' is 10 x 64 in the file, but 12 x 64 in the network",
                                             "'fc.bias' is 10 in the file, but 12 in the network",
                                             "'extra' is not in the network"};
  const auto work = [&](RankModel& model, Job& job) {
    const Weights before = gather_weights(model, job);
    EXPECT_EQ(load_weights(model, given, Fit::partial, "f"), expected);
    const Weights after = gather_weights(model, job);
    for (const NamedTensor& tensor : after) {
      const NamedTensor* in_file = given.find(tensor.name);
      const bool fits = in_file && in_file->shape == tensor.shape;
      EXPECT_TRUE(tensor == (fits ? *in_file : *before.find(tensor.name))) << tensor.name;
    }
    expect_error([&] { load_weights(model, given, Fit::whole, "f"); },
                 {"f does not fit resnet20", "'layer2.0.conv1.weight' is not in the file, and 3 more"});
  };
  on_stages(3, work, 12);
}

// Where there are several, on whichever ranks, the first in the network's order is named to all ranks.
TEST(WeightsIo, TheFirstBadNumberIsFoundWhereverItIs) {
  on_stages(3, [](RankModel& model, Job& job) {
    EXPECT_EQ(first_bad_number(model, job), "");
    for (const StateEntry& entry : state_entries(model.graph())) {
      const bool spoilt = entry.name == "layer2.0.bn1.running_var" || entry.name == "fc.bias";
      if (!spoilt || !model.owns(entry.node)) continue;
      NodeState& state = model[entry.node];
      (entry.buffer ? state.buffers : state.params)[size_t(entry.index)].data<float>()[0] =
          entry.buffer ? -1 : std::nanf("");
    }
    EXPECT_EQ(first_bad_number(model, job),
              "'layer2.0.bn1.running_var' has the variance -1 (element 1 of 32)");
  });
}

TEST(WeightsIo, AFileThatIsMissingOrSpoiltIsTheSameErrorEverywhere) {
  const TemporaryFile file(trained(), WeightFormat::safetensors);
  std::filesystem::resize_file(file.path(), 4000);
  std::mutex mutex;
  std::vector<std::string> sentences;
  on_stages(2, [&](RankModel& model, Job& job) {
    for (const std::string& path : {file.path(), file.path() + ".missing"}) {
      try {
        broadcast_weights(path, model.graph(), job);
      } catch (const Error& error) {
        const std::lock_guard lock(mutex);
        sentences.push_back(error.what());
      }
    }
  });
  ASSERT_EQ(sentences.size(), 4u);
  std::ranges::sort(sentences);
  EXPECT_EQ(sentences[0], sentences[1]);
  EXPECT_EQ(sentences[2], sentences[3]);
}

TEST(WeightsIo, GradientsHaveTheNamesOfTheirParameters) {
  on_stages(1, [&](RankModel& model, Job&) {
    const Weights gradients = gradients_of(model), weights = weights_of(model);
    size_t parameters = 0;
    for (const StateEntry& entry : state_entries(model.graph())) parameters += !entry.buffer;
    EXPECT_EQ(gradients.size(), parameters);
    for (const NamedTensor& g : gradients) {
      ASSERT_TRUE(weights.find(g.name)) << g.name;
      EXPECT_EQ(g.shape, weights.find(g.name)->shape);
    }
  });
}

}  // namespace
}  // namespace antichain
