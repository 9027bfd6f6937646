#include "app/report/metrics.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "framework/bounded_file.h"
#include "framework/error.h"
#include "framework/json.h"
#include "framework/paths.h"
#include "framework/say.h"

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

MetricsFile::MetricsFile(const std::vector<std::string>& files, std::string data, const Measures& measures,
                         int64_t step)
    : data_(std::move(data)), measures_(measures) {
  for (const std::string& file : files) {
    sinks_.push_back({file, nullptr, nullptr});
    Sink& sink = sinks_.back();
    if (is_stream(file)) {
      sink.stream = std::make_unique<OutputStream>(file);
      continue;
    }
    const bool goes_on = step > 0 && exists(file);
    if (goes_on) write_file(file, up_to(step, file));
    sink.growing = std::make_unique<GrowingFile>(file, goes_on);
  }
}

// Where an error ends the run, nobody asks for lost().
MetricsFile::~MetricsFile() {
  if (asked_) return;
  try {
    if (const std::string why = lost(); !why.empty()) warn("the end of the metrics is lost: " + why);
  } catch (...) {  // it is only a warning
  }
}

void MetricsFile::write(const std::string& text) {
  for (Sink& sink : sinks_) {
    if (sink.stream) {
      sink.stream->write(text + "\n");
    } else if (!sink.growing->add(text + "\n") && !std::exchange(warned_, true)) {
      warn(fmt::format("{} takes no line now, training goes on, and its lines are kept for later: {}",
                       sink.file, sink.growing->lost()));
    }
  }
}

std::string MetricsFile::lost() {
  asked_ = true;
  for (Sink& sink : sinks_)
    if (const std::string why = sink.growing ? sink.growing->lost() : ""; !why.empty())
      return fmt::format("{}: {}", sink.file, why);
  return "";
}

void MetricsFile::step(const StepReport& r) {
  Json line{{"step", r.step + 1},     {"epoch", r.epoch + 1},
            {"loss", r.loss},  // null where it is no number
            {"accuracy", r.accuracy}, {"rate", r.rate},
            {"seconds", r.seconds},   {fmt::format("{}_per_s", samples_of(measures_)), r.images_per_s},
            {"data", data_}};
  if (measures_.tokens > 0) line["tokens_per_s"] = r.images_per_s * double(measures_.tokens);
  if (!r.skipped_because.empty()) {
    line["skipped"] = r.skipped;
    line["why"] = r.skipped_because;
  }
  write(line.dump());
}

void MetricsFile::evaluation(const EvaluationReport& r, const std::vector<OutputErrors::Mean>& means) {
  Json line{{"epoch", r.epoch + 1},
            {"steps", r.step},
            {"train_loss", r.train_loss},
            {"train_accuracy", r.train_accuracy},
            {"test_loss", r.test_loss},
            {"test_accuracy", r.test_accuracy},
            {"train_s", r.train_s},
            {"test_s", r.test_s},
            {"data", data_}};
  if (measures_.perplexity) line["test_perplexity"] = perplexity(r.test_loss);
  for (const OutputErrors::Mean& mean : means) line["test_" + mean.key] = mean.value;
  write(line.dump());
}

void MetricsFile::summary(const std::string& json) { write(json); }

}  // namespace antichain
