#include "pipeline/measure/compare_engines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

#include "framework/alternatives.h"
#include "framework/backend.h"
#include "framework/bf16.h"
#include "framework/error.h"
#include "framework/module.h"
#include "framework/random.h"
#include "framework/say.h"
#include "pipeline/device/device_streams.h"
#include "pipeline/host/median.h"
#include "pipeline/run/node_stamps.h"

namespace antichain {
namespace {

constexpr int rounds = 10;
constexpr double hopeless = 5;  // an engine this many times slower than the fastest is timed once
constexpr double never = std::numeric_limits<double>::infinity();

// Fills a tensor with repeatable random numbers. Their size does not matter, but zeros would need less power.
Tensor operand(const TensorSpec& spec, const Context& context) {
  const Tensor host = Tensor::host(spec), device = context.backend().tensor(spec);
  const int64_t period = std::min<int64_t>(spec.elements(), 1 << 16);
  const Philox random(0);
  for (int64_t i = 0; i < period; ++i) {
    const float value = 2 * Philox::uniform(random.words(uint64_t(i))[0]) - 1;
    if (spec.dtype == DType::bf16)
      host.data<Bf16>()[i] = Bf16(value);
    else
      host.data<float>()[i] = value;
  }
  const int64_t bytes = period * size_of(spec.dtype);
  for (int64_t at = bytes; at < host.bytes(); at += bytes)
    std::memcpy(host.raw() + at, host.raw(), size_t(std::min(bytes, host.bytes() - at)));
  context.backend().copy(context, host, device);
  return device;
}

class Race {
 public:
  Race(Context& context, DeviceStep& device, const PassAlternatives& pass)
      : context_(context),
        device_(device),
        pass_(pass),
        seconds_(pass.all.size()),
        failures_(pass.all.size()) {
    for (const TensorSpec& spec : pass.operands) operands_.push_back(operand(spec, context));
    int64_t bytes = 0;
    for (const Alternative& one : pass.all) bytes = std::max(bytes, one.workspace_bytes);
    workspace_ = bytes > 0 ? context.workspace(bytes) : nullptr;
  }

  std::vector<TunedEngine> run() {
    warm_up();
    round(never);
    double fastest_s = never;
    for (const std::vector<double>& seconds : seconds_)
      if (!seconds.empty()) fastest_s = std::min(fastest_s, seconds[0]);
    for (int i = 1; i < rounds; ++i) round(hopeless * fastest_s);
    std::vector<TunedEngine> engines;
    for (size_t i = 0; i < pass_.all.size(); ++i)
      engines.push_back({.engine = pass_.all[i].engine,
                         .workspace_bytes = pass_.all[i].workspace_bytes,
                         .seconds = failures_[i].empty() ? median(seconds_[i]) : never,
                         .failure = failures_[i]});
    return engines;
  }

 private:
  void start(size_t i) { pass_.all[i].run(context_, operands_, workspace_); }

  // Engines warm up one by one, because each loads its code on first use. This also shows which one fails.
  void warm_up() {
    for (size_t i = 0; i < pass_.all.size(); ++i) try {
        start(i);
        device_.wait();
      } catch (const Error& error) {
        failures_[i] = error.what();
      }
  }

  void round(double most_s) {
    device_.tie_clocks(false);
    NodeStamps stamps(device_, [&](int i, Verb, int, double s) { seconds_[size_t(i)].push_back(s); });
    for (size_t i = 0; i < pass_.all.size(); ++i)
      if (failures_[i].empty() && (seconds_[i].empty() || seconds_[i][0] <= most_s))
        stamps.around(int(i), Verb::forward, 0, [&] { start(i); });
    stamps.let_go();
    device_.wait();
    stamps.finish();
  }

  Context& context_;
  DeviceStep& device_;
  const PassAlternatives& pass_;
  std::vector<Tensor> operands_;
  std::byte* workspace_ = nullptr;
  std::vector<std::vector<double>> seconds_;
  std::vector<std::string> failures_;
};

}  // namespace

const TunedEngine& TunedPass::fastest() const {
  return *std::ranges::min_element(engines, {}, &TunedEngine::seconds);
}

void check_tunable(const Backend& device) {
  if (alternatives_of(device.name())) return;
  throw Error(
      fmt::format("there is nothing to tune on {}: it has one engine for each operator", device.name()),
      fmt::format("use --tune with --device {}", module_devices()), ExitCode::usage);
}

std::vector<TunedPass> compare_engines(const Graph& graph, Context& context, Progress& activity) {
  check_tunable(context.backend());
  const ListAlternatives& list = *alternatives_of(context.backend().name());
  const auto device = device_streams(context.backend().name())->step(context);
  std::vector<TunedPass> tuned;
  std::map<std::string, size_t> known;
  const auto add = [&](const Node& node, const PassAlternatives& pass, const Shape& input) {
    const std::string key = fmt::format("{} of {} {}", pass.pass, node.op->str(), input.str());
    if (const auto it = known.find(key); it != known.end()) return void(++tuned[it->second].nodes);
    tuned.push_back({.node = node.name,
                     .pass = pass.pass,
                     .input = input,
                     .engines = Race(context, *device, pass).run()});
    known[key] = tuned.size() - 1;
  };
  for (const Node& node : graph) try {
      activity.beat();
      std::vector<Shape> shapes;
      for (const NodeId input : node.inputs) shapes.push_back(graph.shape(input));
      if (shapes.empty()) continue;
      for (const PassAlternatives& pass : list(*node.op, shapes, node.lowering.precision))
        if (pass.pass != "input gradient" || graph.needs_gradient(node.inputs[0])) add(node, pass, shapes[0]);
    } catch (const Error& error) {
      if (tuned.empty()) throw;
      warn(fmt::format("engines are compared up to the node before {} only: {}", node.name, error.what()));
      break;
    }
  return tuned;
}

}  // namespace antichain
