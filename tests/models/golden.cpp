#include "tests/models/golden.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <stdexcept>

namespace antichain {
namespace {

uint64_t fnv1a(std::string_view name) {
  uint64_t key = 0xCBF29CE484222325;
  for (const char c : name) key = (key ^ uint8_t(c)) * 0x100000001B3;
  return key;
}

// Returns a number in [−1, 1) with 24 bits. SplitMix64: Steele, Lea & Flood, "Fast Splittable Pseudorandom
// Number Generators", OOPSLA 2014.
double drawn(uint64_t key, int64_t index) {
  uint64_t z = key + uint64_t(index + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return double((z ^ (z >> 31)) >> 40) * 0x1p-23 - 1;
}

}  // namespace

void draw_golden(const Tensor& plain, std::string_view full_name) {
  if (plain.dtype() == DType::i32) return;
  const Shape& shape = plain.shape();
  double scale = 0.1, offset = 0;
  if (full_name == "images") {
    scale = 1;
  } else if (const int64_t terms = shape.elements() / shape[0]; terms > 1) {
    scale = std::sqrt(6 / double(terms));
  } else if (full_name.ends_with("weight")) {
    scale = 0.25, offset = 1;
  }
  const uint64_t key = fnv1a(full_name);
  float* values = plain.data<float>();
  for (int64_t i = 0, end = shape.elements(); i < end; ++i) values[i] = float(offset + scale * drawn(key, i));
}

bool large(std::string_view model, Form form) {
  const auto is_one_of = [&](std::initializer_list<std::string_view> models) {
    return std::ranges::find(models, model) != models.end();
  };
  return is_one_of({"resnet101", "resnext50", "resnext101"}) ||
         (form == Form::imagenet &&
          is_one_of({"alexnet", "convnext_tiny", "densenet121", "resnet50", "vgg16"}));
}

namespace {

// Calls use(words) for each line of tests/golden/NAME.txt that is not a comment; false refuses it.
void for_each_line(const std::string& name, const std::function<bool(std::istringstream&)>& use) {
  // Where tests run without the sources they were built of.
  const char* moved = std::getenv("ANTICHAIN_GOLDEN");
  std::ifstream file(fmt::format("{}/{}.txt", moved ? moved : ANTICHAIN_GOLDEN, name));
  if (!file)
    throw std::runtime_error(
        fmt::format("tests/golden/{0}.txt is not there: tests/golden/{0}.py writes it", name));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    if (!use(words))
      throw std::runtime_error(fmt::format("tests/golden/{}.txt has a line of another form: {}", name, line));
  }
}

Form form_of(const std::string& name) { return name == "cifar" ? Form::cifar : Form::imagenet; }

// network FORM MODEL SIDE SHIFT draws A+B A+B …
bool read_network(std::istringstream& words, GoldenErrors& g) {
  std::string form, draws;
  words >> form >> g.model >> g.image >> g.shift >> draws;
  g.form = form_of(form);
  if (!words || draws != "draws") return false;
  char plus = 0;
  for (std::array<int, 2> pair; words >> pair[0] >> plus >> pair[1];) g.batches.push_back(pair);
  return !g.batches.empty() && words.eof();
}

// logits ERROR; losses ERROR; MODULE PARAMETER ERROR PARAMETER ERROR …
bool read_errors(std::istringstream& words, const std::string& first, GoldenErrors& g) {
  if (first == "logits" || first == "losses") return bool(words >> g.errors[first]);
  std::string parameter;
  for (double error = 0; words >> parameter >> error;) g.errors[first + "." + parameter] = error;
  return words.eof();
}

}  // namespace

std::vector<GoldenLosses> read_golden_losses() {
  std::vector<GoldenLosses> all;
  for_each_line("losses", [&](std::istringstream& words) {
    GoldenLosses g{.losses = std::vector<double>(2)};
    std::string form;
    words >> form >> g.model >> g.image >> g.aux >> g.losses[0] >> g.losses[1] >> g.gradient_norm;
    g.form = form_of(form);
    all.push_back(g);
    return bool(words);
  });
  return all;
}

std::vector<GoldenErrors> read_golden_errors() {
  std::vector<GoldenErrors> all;
  for_each_line("gradients", [&](std::istringstream& words) {
    std::string first;
    words >> first;
    if (first == "network") return read_network(words, all.emplace_back());
    return !all.empty() && read_errors(words, first, all.back());
  });
  return all;
}

GoldenLanguage read_golden_language() {
  GoldenLanguage all;
  for_each_line("language", [&](std::istringstream& words) {
    std::string first;
    words >> first;
    if (first == "continuation") {
      for (int token = 0; words >> token;) all.continuation.push_back(token);
      return words.eof();
    }
    if (first == "network") {
      GoldenNetwork& network = all.networks.emplace_back();
      words >> network.name >> network.loss;
    } else if (first == "gradients") {
      words >> all.networks.back().error;
    } else {
      GoldenGradient& gradient = all.networks.back().gradients[first];
      words >> gradient.norm >> gradient.error;
    }
    return bool(words);
  });
  return all;
}

double drawn_golden(std::string_view name, int64_t index) { return drawn(fnv1a(name), index); }

std::vector<GoldenSteps> read_golden_steps(bool large) {
  std::vector<GoldenSteps> all;
  for_each_line("five_steps", [&](std::istringstream& words) {
    GoldenSteps& g = all.emplace_back();
    words >> g.model >> g.rate;
    for (double loss = 0; words >> loss;) g.losses.push_back(loss);
    return g.losses.size() == 6 && words.eof();
  });
  // In double precision the others take up to a minute.
  std::erase_if(all, [large](const GoldenSteps& g) {
    return large == (g.model == "alexnet" || g.model == "squeezenet1_0");
  });
  return all;
}

void draw_golden_images(const Tensor& images, std::span<const int> samples) {
  const int64_t size = images.elements() / int64_t(samples.size());
  float* out = images.data<float>();
  for (const int sample : samples) {
    const uint64_t key = fnv1a(fmt::format("images {}", sample));
    for (int64_t i = 0; i < size; ++i) *out++ = float(drawn(key, i));
  }
}

Graph network_of(const GoldenErrors& c) {
  return make_model(c.model,
                    {.form = c.form, .microbatch = 2, .image = c.image, .dropout = 0, .stochastic_depth = 0});
}

std::function<void(const Tensor&, std::string_view)> start_of(const GoldenErrors& c, const Graph& graph,
                                                              size_t batch) {
  return [&c, &graph, batch](const Tensor& plain, std::string_view full_name) {
    if (full_name == "images") return draw_golden_images(plain, c.batches.at(batch));
    draw_golden(plain, full_name);
    const auto node = std::string(full_name.substr(0, full_name.rfind('.')));
    if (full_name.ends_with(".bias") && graph[graph.find(node)].op->type() == "batch_norm")
      for (int64_t i = 0; i < plain.elements(); ++i) plain.data<float>()[i] += c.shift;
  };
}

}  // namespace antichain
