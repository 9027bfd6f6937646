#include "app/report/metrics.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "framework/bounded_file.h"
#include "framework/error.h"
#include "framework/json.h"

namespace antichain {

using Json = nlohmann::ordered_json;  // prints doubles with all their digits

namespace {

// Returns whether a line remains when training resumes after `step`. An evaluation that follows it is made
// again.
bool stays(const Json& line, int64_t step) {
  if (line.contains("step")) return line["step"].get<int64_t>() <= step;
  return line.contains("train_loss") && line["steps"].get<int64_t>() < step;
}

// Returns the lines that remain. The last one may have been cut short.
std::string up_to(int64_t step, const std::string& file) {
  const std::string text = read_bounded(file, most_metrics_bytes);
  std::string kept;
  for (size_t at = 0, number = 1; at < text.size(); ++number) {
    const size_t end = text.find('\n', at);
    if (end == std::string::npos) break;
    try {
      if (stays(Json::parse(text.substr(at, end - at)), step)) kept += text.substr(at, end + 1 - at);
    } catch (const Json::exception&) {
      throw Error(fmt::format("line {} of {} is none of metrics", number, file),
                  "name another file for --metrics: this one would be cut where training goes on");
    }
    at = end + 1;
  }
  return kept;
}

}  // namespace

MetricsFile::MetricsFile(const std::string& file, std::string data, int64_t step)
    : file_(file), data_(std::move(data)) {
  if (file.empty()) return;
  if (is_stream(file)) {
    stream_.emplace(file);
    return;
  }
  std::error_code ignored;
  const bool goes_on =
      step > 0 && std::filesystem::status(file, ignored).type() != std::filesystem::file_type::not_found;
  if (goes_on) write_file(file, up_to(step, file));
  out_.open(file, goes_on ? std::ios::app : std::ios::trunc);
  if (!out_) throw Error("can't write the metrics file " + file, "does its folder exist?");
}

void MetricsFile::write(const std::string& text) {
  if (file_.empty()) return;
  if (stream_) return stream_->write(text + "\n");
  out_ << text << '\n' << std::flush;  // so that readers of the growing file see whole lines
  if (!out_) throw Error("can't write the metrics file " + file_, "is the disk full?");
}

void MetricsFile::step(const StepReport& r) {
  Json line{{"step", r.step + 1},     {"epoch", r.epoch + 1},
            {"loss", r.loss},  // null where it is no number
            {"accuracy", r.accuracy}, {"rate", r.rate},
            {"seconds", r.seconds},   {"images_per_s", r.images_per_s},
            {"data", data_}};
  if (!r.skipped_because.empty()) {
    line["skipped"] = r.skipped;
    line["why"] = r.skipped_because;
  }
  write(line.dump());
}

void MetricsFile::evaluation(const EvaluationReport& r) {
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
