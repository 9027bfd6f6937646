#include "app/metrics.h"

#include <nlohmann/json.hpp>

#include "framework/error.h"

namespace antichain {

using Json = nlohmann::ordered_json;  // prints doubles with all their digits

MetricsFile::MetricsFile(const std::string& file, std::string data) : file_(file), data_(std::move(data)) {
  if (file.empty()) return;
  out_.open(file, std::ios::trunc);
  if (!out_) throw Error("can't write the metrics file " + file, "does its folder exist?");
}

void MetricsFile::write(const std::string& text) {
  if (file_.empty()) return;
  out_ << text << '\n' << std::flush;  // whoever follows the file sees whole lines
  if (!out_) throw Error("can't write the metrics file " + file_, "is the disk full?");
}

void MetricsFile::step(const StepReport& r) {
  write(Json{{"step", r.step + 1},
             {"epoch", r.epoch + 1},
             {"loss", r.loss},
             {"accuracy", r.accuracy},
             {"rate", r.rate},
             {"seconds", r.seconds},
             {"images_per_s", r.images_per_s},
             {"data", data_}}
            .dump());
}

void MetricsFile::epoch(const EpochReport& r) {
  write(Json{{"epoch", r.epoch + 1},
             {"steps", r.step},
             {"train_loss", r.train_loss},
             {"train_accuracy", r.train_accuracy},
             {"test_loss", r.test_loss},
             {"test_accuracy", r.test_accuracy},
             {"train_s", r.train_s},
             {"test_s", r.test_s},
             {"data", data_}}
            .dump());
}

void MetricsFile::summary(const std::string& json) { write(json); }

}  // namespace antichain
