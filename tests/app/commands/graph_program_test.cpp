// Networks come from a folder. With --graph, every command that builds a network gives what it gives with
// --model. `antichain check` agrees with PyTorch's recording, or names the first node that differs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>

#include "framework/files/safetensors.h"
#include "framework/files/weights.h"
#include "framework/json.h"
#include "tests/app/small_job.h"

namespace antichain {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A network from a folder has the general recipe, so the rate is given here.
constexpr const char* train_two =
    "--batch 16 --microbatches 4 --data-dir data --seed 3 --lr 0.05 --lr-schedule constant --steps 2";

class GraphProgram : public SmallJob {
 protected:
  static void SetUpTestSuite() {
    ran("export --model resnet20 --seed 3 --out w.h5");
    ran("export --model resnet20 --seed 3 --out net.antichain");
    fs::copy(ANTICHAIN_SOURCE_DIR "/tests/golden/small.antichain", path("small.antichain"),
             fs::copy_options::recursive);
  }

  // Returns the hash of all weights and statistics behind the last step.
  static std::string trained(const std::string& words) {
    ran(fmt::format("train {} {} --profile p.json --json t.json", words, train_two));
    return read_json("t.json").at("state");
  }

  // Makes small.antichain anew as NAME, with another graph.json.
  static void write_changed(const std::string& name, const std::function<void(Json&)>& change) {
    fs::remove_all(path(name));
    fs::copy(path("small.antichain"), path(name), fs::copy_options::recursive);
    Json graph = read_json(name + "/graph.json");
    change(graph);
    write_file(path(name + "/graph.json"), graph.dump());
  }
  static Json& node(Json& graph, const std::string& name) {
    const auto found =
        std::ranges::find_if(graph["nodes"], [&](const Json& node) { return node["name"] == name; });
    EXPECT_NE(found, graph["nodes"].end()) << name;
    return *found;
  }
};

TEST_F(GraphProgram, AnOnnxFileIsRefusedByTheCommandThatImportsIt) {
  write_file(path("net.onnx"), "");
  const std::string import = "python3 -m antichain.onnx import net.onnx NAME.antichain";
  for (const std::string words : {"info --graph net.onnx", "check --graph net.onnx",
                                  "export --model resnet20 --init net.onnx --out again.h5",
                                  "evaluate --model resnet20 --data-dir data --batch 16 --weights net.onnx"})
    expect_refused(words, 3, import);
  expect_refused(fmt::format("train --model resnet20 --init net.onnx {}", train_two), 3, import);
  expect_refused("export --model resnet20 --out net.onnx", 2,
                 "python3 -m antichain.onnx export NAME.antichain net.onnx");
}

TEST_F(GraphProgram, AFolderThatAnotherProgramMadeIsNotWrittenTo) {
  const std::string graph = read_file(path("small.antichain/graph.json"));
  expect_refused("export --model resnet20 --out small.antichain", 2, "small.antichain/graph.json is there");
  EXPECT_EQ(read_file(path("small.antichain/graph.json")), graph);
  fs::create_directory(path("mine.antichain"));
  write_file(path("mine.antichain/weights.safetensors"), "mine");
  expect_refused("export --model resnet20 --out mine.antichain", 2, "mine.antichain/weights.safetensors");
  for (const char* seed : {"3", "4"})
    ran(fmt::format("export --model resnet20 --seed {} --out twice.antichain", seed));
}

TEST_F(GraphProgram, WeightsAreNoNetwork) {
  write_file(path("w.pt"), std::string("PK\x03\x04") + "torch.save's");
  for (const char* weights : {"w.pt", "w.h5"})
    expect_refused(std::string("info --graph ") + weights, 3, "have no network in them");
  expect_refused("plan --graph net.antichain --stages 2 --image 64", 2, "takes 'images' of 3 x 32 x 32");
}

TEST_F(GraphProgram, TrainsToTheBitsOfTheNetworkByName) {
  const std::string by_name = trained("--model resnet20");
  EXPECT_EQ(trained("--graph net.antichain"), by_name);
  EXPECT_EQ(trained("--graph net.antichain --local 2"), by_name);
  // A graph.json alone brings no weights: the seed draws them.
  EXPECT_EQ(trained("--graph net.antichain/graph.json --local 2"), by_name);
  ran("export --model resnet20 --seed 4 --out other.h5");
  EXPECT_NE(trained("--graph net.antichain --init other.h5"), by_name);
}

TEST_F(GraphProgram, MpiTrainsToTheSameBits) {
  const std::string here = trained("--graph net.antichain");
  const ProgramRun result =
      run_mpi(2, fmt::format("train --graph net.antichain {} --profile p.json --json mpi.json", train_two));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(read_json("mpi.json").at("state"), here);
}

TEST_F(GraphProgram, ARunGoesOnAndIsEvaluated) {
  const std::string whole = trained("--graph net.antichain");
  ran(
      fmt::format("train --graph net.antichain --local 2 {} --profile p.json --checkpoint ck "
                  "--checkpoint-every 1 --keep 9",
                  train_two));
  EXPECT_EQ(trained("--graph net.antichain --resume ck/step-000000000001"), whole);

  const std::string evaluate = "evaluate --weights ck --data-dir data ";
  EXPECT_THAT(ran(evaluate + "--graph net.antichain"), HasSubstr("resnet20 on 23 test images"));
  expect_refused(evaluate, 2, "give --graph");
  fs::copy(path("net.antichain"), path("other.antichain"));
  std::string text = read_file(path("other.antichain/graph.json"));
  const std::string bn = R"("op":"batch_norm",)";
  text.replace(text.find(bn), bn.size(), bn + R"("options":{"eps":0.01},)");
  write_file(path("other.antichain/graph.json"), text);
  for (const char* network : {"--graph other.antichain", "--model resnet20"})
    expect_refused(fmt::format("train {} {} --resume ck", network, train_two), 3, "graph file");
}

TEST_F(GraphProgram, IsTheSameNetworkInEveryCommand) {
  ran("profile --graph net.antichain --batch 16 --microbatches 4 --local 2 --json q.json");
  const Json by_name = read_json("p.json"), profile = read_json("q.json");
  for (const char* same : {"model", "graph_hash"}) EXPECT_EQ(profile.at(same), by_name.at(same));
  ran("plan --profile q.json --stages 2 --json r.json");
  ran("plan --graph net.antichain --batch 16 --microbatches 4 --stages 2");
  ran("simulate --profile q.json --plan r.json");
  ran("rehearse --profile q.json --plan r.json --local 2");
  ran(fmt::format("train --graph net.antichain --profile q.json --plan r.json --local 2 {}", train_two));

  const std::string info = ran("info --graph net.antichain");
  EXPECT_EQ(info.substr(0, info.find('\n')), ran("info --model resnet20").substr(0, info.find('\n')));

  const std::string data = " --weights w.h5 --data-dir data";
  EXPECT_EQ(ran("evaluate --graph net.antichain" + data), ran("evaluate --model resnet20" + data));
  Weights batch;
  batch.add({"images", {2, 3, 32, 32}, std::vector<float>(2 * 3 * 32 * 32, 0.5f)});
  batch.add({"labels", {2}, std::vector<int64_t>{3, 7}});
  write_weights(path("batch.h5"), batch, WeightFormat::hdf5);
  const std::string of = " --weights w.h5 --images batch.h5 --out ";
  ran("gradients --model resnet20" + of + "g.h5"), ran("gradients --graph net.antichain" + of + "h.h5");
  EXPECT_EQ(read_file(path("g.h5")), read_file(path("h.h5")));

  ran("export --graph net.antichain --out again.h5"),
      ran("export --graph net.antichain --out again.antichain");
  EXPECT_EQ(read_file(path("again.h5")), read_file(path("w.h5")));
  for (const char* file : {"/graph.json", "/weights.safetensors"})
    EXPECT_EQ(read_file(path(std::string("again.antichain") + file)),
              read_file(path(std::string("net.antichain") + file)));
}

// The recording is PyTorch's (tests/golden/graph_folder.py).
TEST_F(GraphProgram, CheckAgreesWithWhatPyTorchRecorded) {
  const std::string out = ran("check --graph small.antichain --json check.json");
  EXPECT_THAT(out, AllOf(HasSubstr("small on 4 samples, recorded by torch"), HasSubstr("gradients")));
  const Json errors = read_json("check.json");
  EXPECT_EQ(errors.at("gradients").size(), 13u);
  EXPECT_EQ(errors.at("losses").size(), 4u);
  for (const char* node : {"act1", "depth", "gated", "aux", "norm", "fc"})
    EXPECT_TRUE(errors.at("outputs").contains(node)) << node;
  // float32 rounds at 6e-8, and a hundred such errors in a sum or a chain add up to 1e-6 here.
  for (const char* kind : {"outputs", "losses", "gradients"})
    for (const auto& [name, error] : errors.at(kind).items()) EXPECT_LT(error.get<double>(), 2e-6) << name;
  EXPECT_EQ(ran("check --graph small.antichain/graph.json"), out);
}

TEST_F(GraphProgram, CheckNamesTheFirstNodeThatDiffers) {
  const auto differs = [](const std::string& name, const std::string& part) {
    expect_refused("check --graph " + name, 3, part);
  };
  write_changed("changed.antichain",
                [](Json& graph) { node(graph, "gate")["options"]["function"] = "silu"; });
  differs("changed.antichain", "the output of node gate (self.gate, graph_folder.py) differs");
  write_changed("changed.antichain", [](Json& graph) { node(graph, "bn1")["options"]["eps"] = 0.1; });
  // Batch norm and the activation behind it are one kernel.
  differs("changed.antichain", "the output of node act1 (self.act1, graph_folder.py) differs");
  write_changed("changed.antichain", [](Json& graph) { node(graph, "aux_loss")["options"]["weight"] = 0.5; });
  differs("changed.antichain", "the loss (self.loss, graph_folder.py) differs");

  write_changed("changed.antichain", [](Json&) {});
  const std::string file = path("changed.antichain/weights.safetensors");
  Weights weights = read_weights(file), other;
  for (NamedTensor t : weights) {
    if (t.name == "depthwise.bias") std::get<0>(t.values)[2] += 0.1f;
    other.add(std::move(t));
  }
  write_weights(file, other, WeightFormat::safetensors);
  differs("changed.antichain", "the output of node depthwise (self.depthwise, graph_folder.py) differs");
}

// A gradient may be off by four times what PyTorch's own float32 is, where a recording says how far that is.
TEST_F(GraphProgram, CheckAllowsAMultipleOfTheRecordedErrorOfFloat32) {
  write_changed("off.antichain", [](Json&) {});
  const std::string file = path("off.antichain/check.safetensors"), changed = "gradient.fc.weight";
  const std::string whole = read_file(file);
  // Writes the recording with a gradient that is 5 % larger and these tensors.
  const auto check = [&](std::vector<NamedTensor> further) {
    Weights recorded;
    double square = 0;
    for (const NamedNumbers& t : numbers_from_safetensors(whole, file)) {
      std::vector<float> values(t.values.begin(), t.values.end());
      if (t.name == changed)
        for (float& x : values) square += double(x) * x, x *= 1.05f;
      if (t.name == "input.labels")
        recorded.add({t.name, t.shape, std::vector<int64_t>(t.values.begin(), t.values.end())});
      else
        recorded.add({t.name, t.shape, std::move(values)});
    }
    for (NamedTensor& t : further) {
      if (t.name.ends_with(changed)) std::get<0>(t.values)[0] *= float(std::sqrt(square));
      recorded.add(std::move(t));
    }
    write_weights(file, recorded, WeightFormat::safetensors);
    return run("check --graph off.antichain");
  };
  const std::string error = "float32_error." + changed;
  const auto share = [&](float x) { return NamedTensor{error, {}, std::vector<float>{x}}; };
  EXPECT_THAT(check({}).err, HasSubstr("the gradient of fc.weight"));
  EXPECT_THAT(check({share(0.005f)}).err, HasSubstr("the gradient of fc.weight"));
  EXPECT_EQ(check({share(0.02f)}).code, 0);
  EXPECT_THAT(check({{error, {2}, std::vector<float>{1, 1}}}).err, HasSubstr("but the network has"));
  EXPECT_THAT(check({{"float32_error.losses", {1}, std::vector<float>{1}}}).err,
              HasSubstr("'float32_error.losses' has 1, but 'losses' 3"));
}

// Batch norm over two samples that differ by a few roundings makes of these what it likes.
TEST_F(GraphProgram, CheckLeavesOutWhatRoundingsChange) {
  fs::create_directory(path("chaos.antichain"));
  write_file(path("chaos.antichain/graph.json"), R"({
    "format": "antichain graph", "version": 1, "model": "chaos",
    "inputs": [{"name": "images", "shape": [1, 1, 1], "dtype": "float32"},
               {"name": "labels", "shape": [], "dtype": "int32"}],
    "nodes": [{"name": "bn", "op": "batch_norm", "inputs": ["images"], "options": {"eps": 1e-14}},
              {"name": "flat", "op": "flatten", "inputs": ["bn"]},
              {"name": "fc", "op": "linear", "inputs": ["flat"], "options": {"out": 2, "bias": false}},
              {"name": "loss", "op": "softmax_cross_entropy", "inputs": ["fc", "labels"]}]})");
  ran("export --graph chaos.antichain/graph.json --out chaos.h5");
  write_weights(path("chaos.antichain/weights.safetensors"), read_weights(path("chaos.h5")),
                WeightFormat::safetensors);
  Weights recorded;
  recorded.add({"input.images", {2, 1, 1, 1}, std::vector<float>{1, 1 + 3e-7f}});
  recorded.add({"input.labels", {2}, std::vector<int64_t>{0, 1}});
  recorded.add({"node.bn", {2, 1, 1, 1}, std::vector<float>{1, -1}});
  recorded.add({"loss", {}, std::vector<float>{1}});
  recorded.add({"losses", {1}, std::vector<float>{1}});
  recorded.add({"gradient.bn.weight", {1}, std::vector<float>{1}});
  recorded.add({"gradient.bn.bias", {1}, std::vector<float>{1}});
  recorded.add({"gradient.fc.weight", {2, 1}, std::vector<float>{1, 1}});
  write_weights(path("chaos.antichain/check.safetensors"), recorded, WeightFormat::safetensors);
  const ProgramRun result = run("check --graph chaos.antichain");
  EXPECT_THAT(result.out, HasSubstr("1 of 1 outputs"));
  EXPECT_THAT(result.out, HasSubstr("can't be compared"));
  EXPECT_THAT(result.err, ::testing::Not(HasSubstr("node bn")));
}

TEST_F(GraphProgram, CheckRefusesTheRecordingOfAnotherNetwork) {
  const auto check = [](const std::string& part) { expect_refused("check --graph bad.antichain", 3, part); };
  write_changed("bad.antichain", [](Json& graph) {
    node(graph, "fc")["name"] = "head", node(graph, "loss")["inputs"][0] = "head";
  });
  check("no tensor 'gradient.head.");
  write_changed("bad.antichain", [](Json& graph) { node(graph, "conv1")["options"]["stride"] = 1; });
  check("'node.conv1' is 4 x 6 x 8 x 4, but the network has 4 x 6 x 8 x 8");
  write_changed("bad.antichain", [](Json& graph) { graph["inputs"][1]["name"] = "classes"; });
  check("no earlier node 'labels'");

  const std::string file = "bad.antichain/check.safetensors";
  write_changed("bad.antichain", [](Json&) {});
  const std::string whole = read_file(path(file));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write_file(path(file), text.replace(at, from.size(), to));
  };
  write_file(path(file), whole.substr(0, whole.size() - 8));
  check("truncated or damaged");
  with("node.conv1", "node.conv2");
  check("'node.conv2', which is nothing of this network");
  with("input.images", "input.image2");
  check("no tensor 'input.images'");
  with("\"F64\"", "\"F16\"");
  check("of type F16");
  fs::remove(path(file));
  check("can't read bad.antichain/check.safetensors");
  fs::remove(path("bad.antichain/weights.safetensors"));
  check("can't read bad.antichain/check.safetensors");
}

TEST_F(GraphProgram, RefusesInOneSentence) {
  write_changed("odd.antichain", [](Json& graph) { node(graph, "act1")["op"] = "erf"; });
  for (const char* command : {"info", "profile", "plan", "train", "check"})
    expect_refused(
        fmt::format("{} --graph odd.antichain", command), 3,
        "node 'act1' (self.act1, graph_folder.py): there is no operator 'erf': known are activate, ");
  expect_refused("info --graph nowhere", 3, "can't read nowhere");
  expect_refused("info --graph small.antichain --model resnet20", 2, "--model excludes --graph");
  expect_refused("train --graph small.antichain --classes 5", 2, "--graph excludes --classes");
  expect_refused("info --graph small.antichain --form imagenet", 2, "leave out --form");
  expect_refused("plan --graph small.antichain --stages 2 --image 64", 2, "takes 'images' of 3 x 8 x 8");
  expect_refused("train --graph small.antichain --data-dir data", 2, "has 5 classes, but cifar10 has 10");
  expect_refused("check", 2, "--graph is required");
  expect_refused("export --out x.h5", 2, "--model or --graph is required");
  expect_refused("export --model resnet20 --format hdf5 --out x.antichain", 2, "leave it out");
  expect_refused("export --model resnet20 --out nowhere/x.antichain", 3, "can't make the folder");
  // A name that data do not fill is refused before anything is read or measured.
  write_changed("named.antichain", [](Json& graph) {
    graph["inputs"][0] = {{"name", "pixels"}, {"shape", {3, 32, 32}}, {"dtype", "float32"}};
    graph["nodes"] = {{{"name", "flat"}, {"op", "flatten"}, {"inputs", {"pixels"}}},
                      {{"name", "fc"}, {"op", "linear"}, {"inputs", {"flat"}}, {"options", {{"out", 10}}}},
                      {{"name", "loss"}, {"op", "softmax_cross_entropy"}, {"inputs", {"fc", "labels"}}}};
  });
  const ProgramRun named =
      expect_refused("train --graph named.antichain/graph.json --data-dir data --batch 16", 3,
                     "an input 'pixels' that no data set fills");
  EXPECT_EQ(named.out, "");

  fs::create_directory(path("huge.antichain"));
  write_file(path("huge.antichain/graph.json"), "{");
  fs::resize_file(path("huge.antichain/graph.json"), uint64_t(1) << 40);  // sparse, so it takes no space
  expect_refused("info --graph huge.antichain", 3, "huge.antichain/graph.json");
}

}  // namespace
}  // namespace antichain
