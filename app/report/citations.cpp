#include "app/report/citations.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <span>
#include <string_view>
#include <utility>

#include "app/cli/commands.h"
#include "app/cli/output_file.h"
#include "app/cli/table.h"
#include "framework/prediction.h"
#include "framework/version.h"
#include "partition/plan/method.h"
#include "pipeline/host/launch.h"
#include "pipeline/schedule/policy.h"

namespace antichain {
namespace {

using Work = std::pair<std::string_view, std::string_view>;  // the beginning of a name, and the work

constexpr Work models[] = {
    {"alexnet",
     "Krizhevsky et al., \"ImageNet Classification with Deep Convolutional Neural Networks\", NIPS 2012"},
    {"vgg",
     "Simonyan, Zisserman, \"Very Deep Convolutional Networks for Large-Scale Image Recognition\", ICLR "
     "2015"},
    {"resnet", "He et al., \"Deep Residual Learning for Image Recognition\", CVPR 2016"},
    {"resnext", "Xie et al., \"Aggregated Residual Transformations for Deep Neural Networks\", CVPR 2017"},
    {"inception", "Szegedy et al., \"Rethinking the Inception Architecture for Computer Vision\", CVPR 2016"},
    {"densenet", "Huang et al., \"Densely Connected Convolutional Networks\", CVPR 2017"},
    {"mobilenet_v2", "Sandler et al., \"MobileNetV2: Inverted Residuals and Linear Bottlenecks\", CVPR 2018"},
    {"mobilenet_v3", "Howard et al., \"Searching for MobileNetV3\", ICCV 2019"},
    {"efficientnet",
     "Tan, Le, \"EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks\", ICML 2019"},
    {"convnext", "Liu et al., \"A ConvNet for the 2020s\", CVPR 2022"},
    {"squeezenet",
     "Iandola et al., \"SqueezeNet: AlexNet-level accuracy with 50x fewer parameters and <0.5MB model "
     "size\", "
     "arXiv 2016"},
};
constexpr Work data_sets[] = {
    // A name that begins so is CIFAR-100's, too.
    {"CIFAR-10", "Krizhevsky, \"Learning Multiple Layers of Features from Tiny Images\", 2009"},
};

std::vector<Work> planning_methods() {
  std::vector<Work> works;
  for (const Method method : methods())
    if (!citation(method).empty()) works.emplace_back(name_of(method), citation(method));
  return works;
}

std::vector<Work> schedules() {
  std::vector<Work> works;
  for (const Policy& policy : policies())
    if (!policy.citation.empty()) works.emplace_back(policy.name, policy.citation);
  return works;
}

std::vector<Work> help_against_delays() {
  std::vector<Work> works = {
      {"pipemare", "Yang et al., \"PipeMare: Asynchronous Pipeline Parallel DNN Training\", MLSys 2021"}};
  for (const PredictionMethod& method : prediction_methods())
    works.emplace_back(method.name, method.citation);
  return works;
}

void add(std::span<const Work> works, const std::string& name, std::vector<std::string>& lines) {
  for (const auto& [beginning, work] : works)
    if (name.starts_with(beginning)) lines.emplace_back(work);
}

void print(const char* what, std::span<const Work> works) {
  fmt::print("\n{}\n", styled(Style::heading, what));
  for (const auto& [beginning, work] : works)
    fmt::print("{}", hanging(fmt::format("  {}", beginning), 14, std::string(work)));
}

void print_all() {
  if (rank_hint() > 0) return;  // under mpirun rank 0 prints
  begin_answer();
  fmt::print("antichain {}, revision {}\n", version(), revision());
  print("Models", models);
  print("Planning methods", planning_methods());
  print("Schedules", schedules());
  print("Against delays", help_against_delays());
  print("Data sets", data_sets);
}

}  // namespace

std::string in_short(const std::string& work) {
  const size_t title = work.find(", \""), end = work.rfind("\", ");
  return title < end && end != std::string::npos ? work.substr(0, title) + work.substr(end + 1) : work;
}

void add_citations(CLI::App& app) {
  add_command(app, "citations", "the works that results rest on, in full", "antichain citations")
      .callback(&print_all);
}

std::vector<std::string> citations(const Cited& cited) {
  std::vector<std::string> lines = {fmt::format("antichain {}, revision {}", version(), revision())};
  add(models, cited.model, lines);
  add(planning_methods(), cited.method, lines);
  add(schedules(), cited.schedule, lines);
  add(help_against_delays(), cited.predict, lines);
  add(help_against_delays(), cited.correction, lines);
  add(data_sets, cited.data, lines);
  return lines;
}

}  // namespace antichain
