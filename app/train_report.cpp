#include "app/train_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/table.h"

namespace antichain {

TrainReporter::TrainReporter(MetricsFile& metrics, const DataSet& data)
    : metrics_(metrics), note_(data.name().starts_with("CIFAR-10") ? "" : data.name()), bar_(stdout) {}

void TrainReporter::on_step(const StepReport& r) {
  metrics_.step(r);
  bar_.show({.done = r.step + 1,
             .total = r.total_steps,
             .epoch = r.epoch + 1,
             .loss = r.loss,
             .accuracy = r.accuracy,
             .images_per_s = r.images_per_s,
             .note = note_});
  step_ = r;
}

void TrainReporter::on_epoch(const EpochReport& r) {
  metrics_.epoch(r);
  bar_.say(
      fmt::format("epoch {} done: train loss {:.4f}, accuracy {:.2f} % in {}; test loss {:.4f}, accuracy "
                  "{:.2f} % in {}{}",
                  r.epoch + 1, r.train_loss, r.train_accuracy * 100, duration(r.train_s), r.test_loss,
                  r.test_accuracy * 100, duration(r.test_s), note_.empty() ? "" : "; " + note_));
  epoch_ = r;
}

std::string describe(const TrainSummary& s) {
  const std::string accuracy =
      s.epoch ? fmt::format("{:.2f} % of the {} test images of {}", s.epoch->test_accuracy * 100,
                            grouped(s.test_images), s.data)
              : fmt::format("not measured, because the run ended within its first epoch of {}", s.data);
  return fmt::format(
      "\nTest accuracy  {}\n"
      "Step time      predicted {} ms, measured {} ms ({:+.1f} %), {:.1f} images/s (median after the first "
      "step)\n"
      "Final state    {} (hash of all weights and statistics)\n",
      accuracy, milliseconds(s.predicted_step_s), milliseconds(s.measured_step_s),
      (s.measured_step_s / s.predicted_step_s - 1) * 100, s.images_per_s, s.state);
}

std::string to_json(const TrainSummary& s, int indent) {
  nlohmann::ordered_json json = {{"model", s.model},
                                 {"data", s.data},
                                 {"ranks", s.ranks},
                                 {"plan_hash", s.plan_hash},
                                 {"steps", s.steps},
                                 {"final_loss", s.loss},
                                 {"predicted_step_s", s.predicted_step_s},
                                 {"measured_step_s", s.measured_step_s},
                                 {"median_images_per_s", s.images_per_s},
                                 {"rank_0_memory_bytes", s.memory_bytes},
                                 {"state", s.state}};
  if (s.epoch) {
    json["epochs"] = s.epoch->epoch + 1;
    json["final_test_loss"] = s.epoch->test_loss;
    json["final_test_accuracy"] = s.epoch->test_accuracy;
  }
  return json.dump(indent);
}

}  // namespace antichain
