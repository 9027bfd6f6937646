// These tests use weight files as a user does. The commands export, evaluate and gradients agree with each
// other and with what Python reads, and training that starts from a file is the same as from the seed that
// the file is made of.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "framework/files/weights.h"
#include "framework/json.h"
#include "framework/random.h"
#include "tests/app/small_job.h"

namespace antichain {
namespace {

using ::testing::HasSubstr;

class WeightsProgram : public SmallJob {
 protected:
  static constexpr int samples = 6, test_images = 23;

  static void SetUpTestSuite() {
    ran("export --model resnet20 --seed 3 --out w.h5");
    ran("export --model squeezenet --seed 3 --out s.h5");
    write_weights(path("batch.safetensors"), batch(), WeightFormat::safetensors);
  }

  static Weights batch() {
    std::vector<float> images(samples * 3 * 32 * 32);
    const Philox random(1);
    for (size_t i = 0; i < images.size(); ++i) images[i] = 2 * Philox::uniform(random.words(i)[0]) - 1;
    Weights w;
    w.add({"images", {samples, 3, 32, 32}, images});
    w.add({"labels", {samples}, std::vector<int64_t>{0, 1, 2, 3, 4, 9}});
    return w;
  }

  static double loss(const std::string& model, const std::string& weights, const std::string& more = "") {
    ran(fmt::format("gradients --model {} --weights {} --images batch.safetensors --json g.json {}", model,
                    weights, more));
    return read_json("g.json").at("loss");
  }
};

TEST_F(WeightsProgram, FormatsConvertIntoEachOther) {
  EXPECT_THAT(ran("export --model resnet20 --init w.h5 --out copy.safetensors"),
              HasSubstr("128 tensors of resnet20"));
  ran("export --model resnet20 --init copy.safetensors --format hdf5 --out again");
  EXPECT_EQ(read_file(path("again")), read_file(path("w.h5")));
  ran("export --model resnet20 --seed 4 --out other.h5");
  EXPECT_NE(read_file(path("other.h5")), read_file(path("w.h5")));
}

TEST_F(WeightsProgram, RefusesWhatIsNotAWeightFileOfTheModel) {
  const std::string bytes = read_file(path("w.h5"));
  write_file(path("short.h5"), bytes.substr(0, bytes.size() / 2));
  write_file(path("text.h5"), "no weights");
  expect_refused("export --model resnet20 --out w", 2, "--format hdf5");
  expect_refused("export --model resnet20 --format h5 --out w", 2, "no format 'h5'");
  expect_refused("export --model resnet20", 2, "--out");
  expect_refused("export --model resnet20 --out nowhere/w.h5", 3, "nowhere");
  expect_refused("export --model resnet20 --init gone.h5 --out never.h5", 3, "gone.h5");
  expect_refused("export --model resnet20 --init short.h5 --out never.h5", 3, "short.h5");
  expect_refused("export --model resnet20 --init text.h5 --out never.h5", 3,
                 "neither an HDF5 nor a safetensors");
  expect_refused("export --model resnet32 --init w.h5 --out never.h5", 3,
                 "'layer1.3.conv1.weight' is not in the file");
  expect_refused("evaluate --model resnet20 --classes 12 --weights w.h5 --data-dir data", 3,
                 "'fc.weight' is 10 x 64 in the file, but 12 x 64 in the network, and 1 more");
  EXPECT_FALSE(std::filesystem::exists(path("never.h5")));
}

// A slip must not cost a file.
TEST_F(WeightsProgram, OnlyWeightsAreReplacedByWeights) {
  write_file(path("notes.h5"), "my notes");
  const std::string given = "--model resnet20 --weights w.h5 ", why = "notes.h5 is there already";
  expect_refused("export --model resnet20 --out notes.h5", 2, why);
  expect_refused("gradients " + given + "--images batch.safetensors --out notes.h5", 2, why);
  expect_refused("evaluate " + given + "--data-dir data --logits notes.h5", 2, why);
  EXPECT_EQ(read_file(path("notes.h5")), "my notes");
  for (int time = 0; time < 2; ++time) ran("export --model resnet20 --out twice.safetensors");
}

TEST_F(WeightsProgram, PartialExportListsWhatItSkipped) {
  const std::string out = ran("export --model resnet20 --classes 12 --init-partial w.h5 --seed 8 --out p.h5");
  EXPECT_THAT(out, HasSubstr("Skipped: 'fc.weight' is 10 x 64 in the file, but 12 x 64 in the network\n"));
  EXPECT_THAT(out, HasSubstr("Skipped: 'fc.bias' is 10 in the file, but 12 in the network\n"));
  EXPECT_TRUE(*read_weights(path("p.h5")).find("conv1.weight") ==
              *read_weights(path("w.h5")).find("conv1.weight"));
}

// w.h5 is what seed 3 draws, so a run that starts from it is the run of seed 3, on any number of ranks.
TEST_F(WeightsProgram, TrainingStartsFromAFile) {
  const auto state = [](const std::string& more) {
    ran("train --steps 2 --json t.json " + std::string(given) + more);
    return read_json("t.json").at("state").get<std::string>();
  };
  const std::string expected = state("--seed 3");
  ran("export --model resnet20 --init w.h5 --out w2.safetensors");
  EXPECT_EQ(state("--seed 3 --init w2.safetensors"), expected);
  EXPECT_EQ(state("--seed 3 --init w.h5 --local 2"), expected);
  ran("export --model resnet20 --seed 4 --out other.h5");
  EXPECT_NE(state("--seed 3 --init other.h5 --local 2"), expected);

  const std::string one_step = "train --steps 1" + std::string(given);
  ran("export --model resnet20 --classes 12 --out twelve.h5");
  expect_refused(one_step + "--init twelve.h5", 3,
                 "'fc.weight' is 12 x 64 in the file, but 10 x 64 in the network");
  expect_refused(one_step + "--init w.h5 --init-partial w.h5", 2, "--init");
  EXPECT_THAT(ran(one_step + "--local 2 --init-partial twelve.h5"),
              HasSubstr("Skipped: 'fc.weight' is 12 x 64"));
}

TEST_F(WeightsProgram, EvaluationIsThatOfItsLogits) {
  ran("evaluate --model resnet20 --weights w.h5 --data-dir data --batch 7 --logits l.h5 --json e.json");
  const Weights file = read_weights(path("l.h5"));
  ASSERT_EQ(file.find("logits")->shape, (std::vector<int64_t>{test_images, 10}));
  const auto& logits = std::get<0>(file.find("logits")->values);
  const auto& labels = std::get<1>(file.find("labels")->values);
  double loss = 0, correct = 0;
  for (int i = 0; i < test_images; ++i) {
    const float* row = logits.data() + 10 * i;
    double sum = 0;
    for (int k = 0; k < 10; ++k) sum += std::exp(double(row[k]));
    loss += std::log(sum) - row[labels[size_t(i)]];
    correct += std::max_element(row, row + 10) - row == labels[size_t(i)];
    EXPECT_EQ(labels[size_t(i)], i % 10);
  }
  const Json result = read_json("e.json");
  EXPECT_NEAR(result.at("loss"), loss / test_images, 1e-6 * loss / test_images);  // float32 logarithms
  EXPECT_EQ(result.at("accuracy"), correct / test_images);
  EXPECT_EQ(result.at("images"), test_images);

  ran("evaluate --model resnet20 --weights w.h5 --data-dir data --batch 23 --logits one.safetensors");
  const Weights one = read_weights(path("one.safetensors"));
  const auto& at_once = std::get<0>(one.find("logits")->values);
  for (size_t i = 0; i < logits.size(); ++i)  // another batch may have another algorithm
    EXPECT_NEAR(at_once[i], logits[i], 1e-5 * std::max(1.0f, std::abs(logits[i])));
}

// Seven images to a rank: the last ranks of three get none of the second round.
TEST_F(WeightsProgram, EvaluationIsTheSameOnAnyNumberOfRanks) {
  const auto evaluated = [](const std::string& more) {
    ran("evaluate --model resnet20 --weights w.h5 --data-dir data --batch 7 --logits r.h5 --json r.json " +
        more);
    return read_file(path("r.json")) + read_file(path("r.h5"));
  };
  const std::string expected = evaluated("");
  for (const char* ranks : {"--local 2", "--local 3", "--local 5"})
    EXPECT_EQ(evaluated(ranks), expected) << ranks;
}

TEST_F(WeightsProgram, EvaluationTakesAPrecision) {
  const std::string words =
      "evaluate --model resnet20 --weights w.h5 --data-dir data --json precision.json --precision ";
  const ProgramRun first = run(words + "bf16");
  if (first.err.find("AVX512_BF16") != std::string::npos) GTEST_SKIP() << first.err;
  const auto loss_in = [&](const std::string& precision) {
    ran(words + precision);
    const Json result = read_json("precision.json");
    EXPECT_EQ(result.at("precision"), precision);
    return result.at("loss").get<double>();
  };
  const double exact = loss_in("float32"), rounded = loss_in("bf16");
  EXPECT_NE(rounded, exact);
  EXPECT_NEAR(rounded, exact, 0.02 * exact);
}

// A step t against the gradient lowers the loss by t |g|^2, in the limit. t |g|^2 = 0.01 leaves a float32
// loss of 2.3 four digits of it; the second derivative's part cancels between forward and backward, and 2 %
// is what the third may take.
TEST_F(WeightsProgram, GradientsPredictTheLoss) {
  for (const char* model : {"resnet20", "squeezenet"}) {
    const std::string weights = std::string(model) == "resnet20" ? "w.h5" : "s.h5";
    ran(fmt::format("gradients --model {} --weights {} --images batch.safetensors --out g.h5", model,
                    weights));
    const Weights gradients = read_weights(path("g.h5")), start = read_weights(path(weights));
    double squares = 0;
    for (const NamedTensor& t : start)
      if (const NamedTensor* g = gradients.find(t.name))
        for (const float v : std::get<0>(g->values)) squares += double(v) * v;
    const double step = 0.01 / squares;
    const auto moved = [&](double by) {
      Weights w;
      for (NamedTensor t : start) {
        if (const NamedTensor* g = gradients.find(t.name))
          for (size_t i = 0; i < std::get<0>(t.values).size(); ++i)
            std::get<0>(t.values)[i] += float(by * std::get<0>(g->values)[i]);
        w.add(std::move(t));
      }
      write_weights(path("moved.h5"), w, WeightFormat::hdf5);
      return loss(model, "moved.h5");
    };
    EXPECT_NEAR((moved(step) - moved(-step)) / (2 * step * squares), 1, 0.02) << model;
  }
}

TEST_F(WeightsProgram, GradientFilesSayTheSame) {
  const std::string given = "gradients --model squeezenet --weights s.h5 --images batch.safetensors ";
  ran(given + "--out g.safetensors --json g.json");
  ran(given + "--out g.h5");
  const Weights gradients = read_weights(path("g.safetensors"));
  const Json json = read_json("g.json");
  EXPECT_EQ(json.at("gradients").size() + 2, gradients.size());
  EXPECT_FLOAT_EQ(json.at("loss"), std::get<0>(gradients.find("loss")->values)[0]);
  EXPECT_EQ(gradients.find("logits")->shape, (std::vector<int64_t>{samples, 10}));
  for (const Json& line : json.at("gradients")) {
    double squares = 0;
    for (const float v : std::get<0>(gradients.find(line.at("name").get<std::string>())->values))
      squares += double(v) * v;
    EXPECT_DOUBLE_EQ(line.at("norm"), std::sqrt(squares));
  }
  const Weights again = read_weights(path("g.h5"));
  for (const NamedTensor& t : gradients) EXPECT_TRUE(t == *again.find(t.name)) << t.name;
}

// SqueezeNet has no batch norm, so only roundings depend on how a batch is cut.
TEST_F(WeightsProgram, MicrobatchesMakeNoDifference) {
  const std::string given = "gradients --model squeezenet --weights s.h5 --images batch.safetensors ";
  ran(given + "--out whole.h5");
  ran(given + "--microbatches 3 --out cut.h5");
  const Weights whole = read_weights(path("whole.h5")), cut = read_weights(path("cut.h5"));
  for (const NamedTensor& t : whole) {
    double difference = 0, norm = 0;
    const auto &a = std::get<0>(t.values), &b = std::get<0>(cut.find(t.name)->values);
    for (size_t i = 0; i < a.size(); ++i) difference += std::pow(a[i] - b[i], 2), norm += std::pow(a[i], 2);
    EXPECT_LE(std::sqrt(difference), 1e-4 * std::sqrt(norm)) << t.name;  // float32 through 26 layers
  }
  expect_refused(given + "--microbatches 4 --out never.h5", 2, "a batch of 6");
}

TEST_F(WeightsProgram, RefusesSpoiltBatches) {
  const auto refused = [](const std::string& part, const auto& change) {
    Weights spoilt;
    for (NamedTensor t : batch()) {
      change(t);
      spoilt.add(std::move(t));
    }
    write_weights(path("spoilt.h5"), spoilt, WeightFormat::hdf5);
    expect_refused("gradients --model resnet20 --weights w.h5 --images spoilt.h5", 3, part);
  };
  refused("has no float32 tensor 'images'", [](NamedTensor& t) {
    if (t.name == "images") t.name = "image";
  });
  refused("'labels' is 5, but must be 6", [](NamedTensor& t) {
    if (t.name == "labels") t = {"labels", {5}, std::vector<int64_t>(5)};
  });
  refused("a label is 10", [](NamedTensor& t) {
    if (t.name == "labels") std::get<1>(t.values)[3] = 10;
  });
  refused("must be N x 3 x H x H", [](NamedTensor& t) {
    if (t.name == "images") t.shape = {samples, 3, 64, 16};
  });
  expect_refused("gradients --model resnet20 --weights w.h5 --images w.h5", 3, "'images'");
}

// Returns a Python that has the module, or "".
std::string python_with(const std::string& module) {
  const char* given = std::getenv("ANTICHAIN_PYTHON");
  for (const std::string& python :
       {std::string(given ? given : ""), std::string("/usr/bin/python3"), std::string("python3")})
    if (!python.empty() &&
        std::system(fmt::format("{} -c 'import {}' >/dev/null 2>&1", python, module).c_str()) == 0)
      return python;
  return "";
}

TEST_F(WeightsProgram, H5pyReadsOursAndWeReadIts) {
  const std::string python = python_with("h5py");
  if (python.empty()) GTEST_SKIP() << "python3-h5py is not installed";
  write_file(
      path("through_h5py.py"),
      "import h5py\n"
      "ours, copy = h5py.File('w.h5'), h5py.File('theirs.h5', 'w')\n"
      "assert ours['layer1.0.conv1.weight'].shape == (16, 16, 3, 3)\n"
      "assert ours['bn1.num_batches_tracked'].shape == () and ours['bn1.num_batches_tracked'].dtype == 'i8'\n"
      "for name in ours: copy[name] = ours[name][()]\n");
  ASSERT_EQ(std::system(fmt::format("cd '{}' && {} through_h5py.py", path(""), python).c_str()), 0);
  ran("export --model resnet20 --init theirs.h5 --out back.h5");
  EXPECT_EQ(read_file(path("back.h5")), read_file(path("w.h5")));
}

TEST_F(WeightsProgram, TorchvisionLoadsOursByName) {
  const std::string python = python_with("torchvision");
  if (python.empty()) GTEST_SKIP() << "python3-torchvision is not installed";
  ran("export --model resnet18 --form imagenet --out r.safetensors");
  write_file(path("load.py"),
             "import json, struct, numpy, torch, torchvision\n"
             "data = open('r.safetensors', 'rb').read()\n"
             "start = 8 + struct.unpack('<Q', data[:8])[0]\n"
             "header = json.loads(data[8:start])\n"
             "header.pop('__metadata__')\n"
             "state = {}\n"
             "for name, t in header.items():\n"
             "    begin, end = (start + o for o in t['data_offsets'])\n"
             "    array = numpy.frombuffer(data[begin:end], {'F32': '<f4', 'I64': '<i8'}[t['dtype']])\n"
             "    state[name] = torch.from_numpy(array.reshape(t['shape']).copy())\n"
             "torchvision.models.resnet18(weights=None).load_state_dict(state, strict=True)\n");
  EXPECT_EQ(std::system(fmt::format("cd '{}' && {} load.py", path(""), python).c_str()), 0);
}

}  // namespace
}  // namespace antichain
