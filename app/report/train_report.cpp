#include "app/report/train_report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "app/cli/number_text.h"
#include "app/cli/table.h"
#include "app/report/time_report.h"
#include "framework/say.h"

namespace antichain {

namespace {
bool are_generated(const std::string& data) { return data.starts_with("generated"); }
}  // namespace

TrainReporter::TrainReporter(MetricsFile& metrics, const DataSet& data, const Measures& measures,
                             const OutputErrors& errors, std::vector<std::string> host_of_rank,
                             LossWatch loss_watch)
    : metrics_(metrics),
      data_(data),
      measures_(measures),
      errors_(errors),
      host_of_rank_(std::move(host_of_rank)),
      note_(are_generated(data.name()) ? data.name() : ""),
      loss_watch_(std::move(loss_watch)),
      bar_(stdout) {}

double TrainReporter::mean_loss(double newest) {
  constexpr size_t most = 20;
  if (!std::isfinite(newest)) return newest;
  losses_.push_back(newest);
  if (losses_.size() > most) losses_.pop_front();
  return std::accumulate(losses_.begin(), losses_.end(), 0.0) / double(losses_.size());
}

void TrainReporter::warn_above(const std::string& sentence) {
  bar_.give_way();
  warn(sentence);
}

void TrainReporter::on_step(const StepReport& r) {
  metrics_.step(r);
  if (!r.skipped_because.empty())
    warn_above(fmt::format("{}; skipped, as {} so far", r.skipped_because, counted(r.skipped, "step")));
  else if (const std::string warning = loss_watch_.see(r.loss); !warning.empty())
    warn_above(warning);
  if (!before_) before_ = r.step;
  bar_.show({.done = r.step + 1,
             .total = r.total_steps,
             .before = *before_,
             .epoch = r.epoch + 1,
             .loss = r.loss,
             .accuracy = r.accuracy,
             .images_per_s = r.images_per_s,
             .tokens = measures_.tokens,
             .mean_loss = mean_loss(r.loss)});
}

void TrainReporter::on_evaluation(const EvaluationReport& r) {
  means_ = errors_.means(r.output_sums);
  metrics_.evaluation(r, means_);
  bar_.say(fmt::format("{} done: train loss {:.4f}{} in {}; test loss {:.4f}{}{}{} in {}{}",
                       r.ends_epoch ? fmt::format("epoch {}", r.epoch + 1) : fmt::format("step {}", r.step),
                       r.train_loss, and_accuracy(r.train_accuracy), duration(r.train_s), r.test_loss,
                       and_perplexity(r.test_loss, measures_), and_accuracy(r.test_accuracy),
                       and_means(means_), duration(r.test_s), note_.empty() ? "" : "; " + note_));
  if (const std::string replaced = data_.replaced(); !replaced.empty()) warn_above(replaced);
  evaluation_ = r;
}

void TrainReporter::on_checkpoint(const CheckpointReport& r) {
  if (!r.failure.empty())
    return warn_above(fmt::format("the checkpoint of step {} could not be written, training goes on: {}",
                                  r.step, r.failure));
  bar_.say(fmt::format("step {} saved: {}, {} MiB in {:.2f} s, for which training waited {:.2f} s", r.step,
                       r.path, mebibytes(r.bytes), r.seconds, r.held_up_s));
  if (!r.warning.empty()) warn_above(r.warning);
}

void TrainReporter::on_rebalance(const RebalanceReport& r) {
  bar_.say(describe(r));
  rebalances_.push_back(r);
}

void TrainReporter::on_end(const std::vector<TimeSheet>& times) {
  times_ = times;
  bar_.finish();  // keeps the last loss and accuracy on the screen
  bar_.say("\n" + describe(times, host_of_rank_));
}

std::string describe(const RebalanceReport& r) {
  if (r.what == RebalanceReport::What::kept)
    return fmt::format("step {}: since nodes moved a step takes {} ms instead of {} (predicted: {})", r.step,
                       milliseconds(r.after_s), milliseconds(r.before_s), milliseconds(r.predicted_after_s));
  const std::string moved =
      fmt::format("{} ({} MiB) moved to another rank in {} ms", counted(r.moved.nodes, "node"),
                  mebibytes(r.moved.bytes), milliseconds(r.pause_s));
  if (r.what == RebalanceReport::What::taken_back)
    return fmt::format("step {}: back to the plan before, because a step takes {} ms where it took {}; {}",
                       r.step, milliseconds(r.after_s), milliseconds(r.before_s), moved);
  std::string speeds;
  for (size_t rank = 0; rank < r.speeds.size(); ++rank)
    speeds += fmt::format("{}{:.2f}", rank > 0 ? ", " : "", r.speeds[rank]);
  return fmt::format(
      "step {}: ranks compute at {} of the speeds planned for: {}; a step took {} ms, and of {} ms predicted "
      "now {} are to be left (planned in {} ms)",
      r.step, speeds, moved, milliseconds(r.before_s), milliseconds(r.predicted_before_s),
      milliseconds(r.predicted_after_s), milliseconds(r.planning_s));
}

namespace {

nlohmann::ordered_json as_json(const RebalanceReport& r) {
  using What = RebalanceReport::What;
  nlohmann::ordered_json json = {{"what", r.what == What::moved  ? "moved"
                                          : r.what == What::kept ? "kept"
                                                                 : "taken back"},
                                 {"step", r.step},
                                 {"speeds", r.speeds},
                                 {"nodes", r.moved.nodes},
                                 {"bytes", r.moved.bytes},
                                 {"pause_s", r.pause_s},
                                 {"planning_s", r.planning_s},
                                 {"step_before_s", r.before_s},
                                 {"predicted_before_s", r.predicted_before_s},
                                 {"predicted_after_s", r.predicted_after_s},
                                 {"plan_hash", r.plan}};
  if (r.what != What::moved) json["step_after_s"] = r.after_s;
  return json;
}

std::string pace(const TrainSummary& s) {
  if (s.measures.tokens == 0) return fmt::format("{:.1f} images/s", s.images_per_s);
  const std::string of_best = s.rate.best_per_s > 0
                                  ? fmt::format(", {:.1f} GFLOP/s a rank, {} % of the fastest layer's",
                                                s.rate.per_s(s.measured_step_s, s.ranks) * 1e-9,
                                                percent(s.rate.share(s.measured_step_s, s.ranks)))
                                  : "";
  return fmt::format("{:.0f} tokens/s, {:.1f} sequences/s{}", s.images_per_s * double(s.measures.tokens),
                     s.images_per_s, of_best);
}

}  // namespace

std::string describe(const TrainSummary& s) {
  const bool hits = s.measures.hits && s.measures.tokens == 0;
  const std::string accuracy =
      !s.evaluation ? fmt::format("not measured, because the run ended within its first epoch of {}", s.data)
      : hits        ? fmt::format("{:.2f} % of the {} test images of {}", s.evaluation->test_accuracy * 100,
                                  grouped(s.test_images), s.data)
                    : fmt::format("{:.6g}{}{} over the {} test {} of {}", s.evaluation->test_loss,
                           s.measures.tokens > 0 ? " a token" : "",
                                  and_perplexity(s.evaluation->test_loss, s.measures), grouped(s.test_images),
                           s.measures.tokens > 0 ? "rows" : "samples", s.data);
  const bool worse_since = s.evaluation && s.best.step > 0 && s.best.step != s.evaluation->step;
  const std::string best = !worse_since ? ""
                                        : fmt::format("; best was {} after step {}",
                                                      hits ? fmt::format("{:.2f} %", s.best.accuracy * 100)
                                                           : fmt::format("{:.6g}", s.best.loss),
                                                      grouped(s.best.step));
  const std::string measured =
      s.measured_step_s > 0 ? fmt::format("measured {} ms ({:+.1f} %), {} (median after the first step)",
                                          milliseconds(s.measured_step_s),
                                          (s.measured_step_s / s.predicted_step_s - 1) * 100, pace(s))
                            : "not measured: every step was done before";
  const std::string trained = s.accuracy ? and_accuracy(*s.accuracy) : "";
  const auto labelled = [](const char* label, const std::string& text) { return hanging(label, 15, text); };
  return labelled("Last step", fmt::format("loss {:.4f}{}", s.loss, trained)) +
         labelled(hits ? "Test accuracy" : "Test loss",
                  accuracy + and_means(s.means) + best +
                      (s.evaluation && are_generated(s.data)
                           ? "; generated images are easy to tell apart, so this is no result"
                           : "")) +
         (s.ended_early.empty() ? "" : labelled("Ended early", s.ended_early)) +
         labelled("Step time",
                  fmt::format("predicted {} ms, {}", milliseconds(s.predicted_step_s), measured)) +
         labelled("Final state", s.state + " (hash of all weights and statistics)") + "\n" +
         memory_table(s.processes) + "\n";
}

std::string to_json(const TrainSummary& s, int indent) {
  nlohmann::ordered_json json = {{"model", s.model},
                                 {"precision", s.precision},
                                 {"data", s.data},
                                 {"ranks", s.ranks},
                                 {"plan_hash", s.plan_hash},
                                 {"steps", s.steps},
                                 {"final_loss", s.loss},
                                 {"predicted_step_s", s.predicted_step_s},
                                 {"measured_step_s", s.measured_step_s},
                                 {fmt::format("median_{}_per_s", samples_of(s.measures)), s.images_per_s},
                                 {"rank_0_memory_bytes", s.memory_bytes},
                                 {"state", s.state}};
  if (s.accuracy) json["final_accuracy"] = *s.accuracy;
  if (s.measures.tokens > 0) json["median_tokens_per_s"] = s.images_per_s * double(s.measures.tokens);
  if (s.rate.best_per_s > 0 && s.measured_step_s > 0) {
    json["flop_per_s_of_a_rank"] = s.rate.per_s(s.measured_step_s, s.ranks);
    json["share_of_fastest_layer"] = s.rate.share(s.measured_step_s, s.ranks);
  }
  for (const MemoryRow& row : s.processes)
    json["process_memory"].push_back(
        {{"estimated_bytes", row.predicted_bytes}, {"measured_bytes", row.measured_bytes}});
  for (const RebalanceReport& r : s.rebalances) json["rebalances"].push_back(as_json(r));
  json["load_imbalance"] = load_imbalance(s.times);
  json["starved_share"] = starved_share(s.times);
  json["seconds"] = to_json(s.times);
  if (s.evaluation) {
    json["epochs"] = s.evaluation->epoch + int(s.evaluation->ends_epoch);  // whole ones
    json["final_test_loss"] = s.evaluation->test_loss;
    if (s.measures.perplexity) json["final_test_perplexity"] = perplexity(s.evaluation->test_loss);
    const bool hits = s.measures.hits;
    if (hits) json["final_test_accuracy"] = s.evaluation->test_accuracy;
    for (const OutputErrors::Mean& mean : s.means) json["final_test_" + mean.key] = mean.value;
    json["best_step"] = s.best.step;
    json["best_test_loss"] = s.best.loss;
    if (hits && s.measures.tokens == 0) json["best_test_accuracy"] = s.best.accuracy;
  }
  if (!s.ended_early.empty()) json["ended_early"] = s.ended_early;
  return json.dump(indent);
}

}  // namespace antichain
