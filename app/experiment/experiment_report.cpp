#include "app/experiment/experiment_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "app/cli/number_text.h"
#include "app/cli/table.h"
#include "app/experiment/published_table1.h"
#include "pipeline/host/starved_time.h"

namespace antichain {
namespace {

const Cell* find(const std::vector<Cell>& cells, const std::string& model, const std::string& method,
                 int ranks) {
  const auto it = std::ranges::find_if(cells, [&](const Cell& c) {
    return c.key.model == model && c.key.method == method && c.key.ranks == ranks;
  });
  return it == cells.end() ? nullptr : &*it;
}

std::string number(double x, int digits = 2) { return fmt::format("{:.{}f}", x, digits); }

// Returns the throughput relative to one rank, for profiles that do not say how many images a micro-batch
// has.
std::string throughput(const std::vector<Cell>& cells, const Cell& cell) {
  const double images = double(cell.microbatch) * cell.microbatches;
  return images > 0 ? number(images / cell.step_s(), 1) : fmt::format("{} x", number(speedup(cells, cell)));
}

class Report {
 public:
  Report(const SpeedupOptions& o, const Sweep& sweep, const StudyFigures& figures)
      : o_(o),
        cells_(sweep.cells),
        sweep_(sweep),
        figures_(figures),
        document_(fmt::format("Speedup study: {} steps", participle(o.mode))) {}

  ReportDocument write() {
    what_this_is();
    headline();
    all_methods();
    for (const ModelFigures& of : figures_.models) one_model(of);
    open_ends();
    document_.heading("Made with");
    document_.paragraph(provenance_line() + fmt::format(", seed {}", o_.seed));
    document_.paragraph(fmt::format("Command: `{}`", shell_words(own_command())));
    return document_;
  }

 private:
  void what_this_is() {
    switch (o_.mode) {
      case StudyMode::simulate:
        document_.paragraph("**All times here are simulated** from profiles: nothing ran.");
        break;
      case StudyMode::rehearse:
        document_.paragraph(
            "**All times here are rehearsed**: real ranks, messages and schedules on this machine, but every "
            "node takes its "
            "profiled time by waiting instead of computing. Predicted stands for simulated.");
        break;
      case StudyMode::measure:
        document_.paragraph(fmt::format(
            "All times here are **measured** by training on ranks of this machine (device {}, {}, {} a "
            "rank). "
            "Predicted stands for simulated from a profile that was taken under the same load; rehearsed, "
            "for real ranks that wait for those times instead of computing; the difference is measured over "
            "predicted.",
            o_.machine.device, o_.precision, counted(o_.machine.threads, "thread")));
        break;
    }
    document_.paragraph(
        fmt::format("{} micro-batches a step under {}, objective {}; profiles {}; link {}. A speedup is over "
                    "one rank doing the same step.",
                    o_.microbatches, o_.schedule.name, name_of(o_.objective),
                    o_.profiles.empty() ? "measured here" : "of " + o_.profiles, link()));
    if (const std::string doubt = starved_cells(cells_); !doubt.empty())
      document_.paragraph("**" + doubt + "**");
  }

  std::string link() const {
    if (o_.link_bytes_per_s < 0 && o_.link_latency_s < 0)
      return "as profiled (free where a profile has none)";
    const std::string speed = o_.link_bytes_per_s < 0 ? "as profiled"
                              : o_.link_bytes_per_s == 0
                                  ? "infinitely fast"
                                  : fmt::format("{:g} GB/s", o_.link_bytes_per_s / 1e9);
    return fmt::format(
        "{}, latency {}", speed,
        o_.link_latency_s < 0 ? "as profiled" : fmt::format("{:g} us", o_.link_latency_s * 1e6));
  }

  std::vector<double> speedups(const std::string& method, int ranks) const {
    std::vector<double> all;
    for (const std::string& model : o_.models)
      if (const Cell* cell = find(cells_, model, method, ranks); cell && cell->refusal.empty())
        all.push_back(speedup(cells_, *cell));
    return all;
  }

  static std::string geometric_mean(const std::vector<double>& all) {
    if (all.empty()) return "-";
    double sum = 0;
    for (const double x : all) sum += std::log(x);
    return number(std::exp(sum / double(all.size())));
  }

  // This is written only where the study has what the publication printed.
  void headline() {
    std::vector<PublishedSpeedup> columns;
    for (const PublishedSpeedup& published : published_speedups)
      if (std::ranges::count(o_.ranks, published.devices) > 0) columns.push_back(published);
    if (columns.empty()) return;
    document_.heading("Beside the publication");
    std::vector<std::string> header = {"speedup over one device"}, theirs = {"the publication, on GPUs"};
    for (const auto& [ranks, value] : columns) {
      header.push_back(fmt::format("{} devices", ranks));
      theirs.push_back(number(value));
    }
    std::vector<std::vector<std::string>> rows = {theirs};
    for (const std::string& method : o_.methods) {
      std::vector<std::string> row = {fmt::format("{}, {}: mean of {} (and the best)", method,
                                                  participle(o_.mode),
                                                  counted(int64_t(o_.models.size()), "model"))};
      for (const auto& [ranks, _] : columns) {
        const std::vector<double> all = speedups(method, ranks);
        row.push_back(
            all.empty() ? "-" : fmt::format("{} ({})", geometric_mean(all), number(std::ranges::max(all))));
      }
      rows.push_back(row);
    }
    document_.table(header, rows);
    document_.paragraph(
        "Means are geometric, over the models that the method has a plan for. The publication's figures are "
        "of "
        "its own hardware and of training on CIFAR-10: they are there to place these, not to be compared "
        "digit "
        "by digit.");
  }

  void all_methods() {
    for (const std::string& file : figures_.overviews)
      if (!file.empty()) document_.picture(file, "Speedup of every model on the most ranks, by method");
    for (const int ranks : o_.ranks) {
      if (ranks == 1) continue;
      document_.heading(fmt::format("Speedup on {} ranks", ranks));
      std::vector<std::string> header = {"model"};
      header.insert(header.end(), o_.methods.begin(), o_.methods.end());
      std::vector<std::vector<std::string>> rows;
      for (const std::string& model : o_.models) rows.push_back(speedup_row(model, ranks));
      document_.table(header, rows);
    }
    document_.paragraph(
        "Straight pipelines (one device a stage) have plain names; with `+replicas` the method also shares "
        "out "
        "replicas; `data-parallel` makes every device one. Bold: the best of the row. *: the best straight "
        "pipeline. -: no plan.");
  }

  // Returns the largest speedup of a model on so many ranks among the methods that count; 0 where there is
  // none.
  template <class Counts>
  double best_speedup(const std::string& model, int ranks, const Counts& counts) const {
    double best = 0;
    for (const std::string& method : o_.methods)
      if (const Cell* cell = find(cells_, model, method, ranks);
          cell && cell->refusal.empty() && counts(method))
        best = std::max(best, speedup(cells_, *cell));
    return best;
  }

  std::vector<std::string> speedup_row(const std::string& model, int ranks) const {
    const auto straight = [](const std::string& method) {
      return study_method(method).kind == StudyMethod::Kind::straight;
    };
    const double best = best_speedup(model, ranks, [](const std::string&) { return true; });
    const double best_straight = best_speedup(model, ranks, straight);
    std::vector<std::string> row = {model};
    for (const std::string& method : o_.methods) {
      const Cell* cell = find(cells_, model, method, ranks);
      if (!cell || !cell->refusal.empty()) {
        row.push_back("-");
        continue;
      }
      const double x = speedup(cells_, *cell);
      const std::string star = straight(method) && x >= best_straight - 0.005 ? "*" : "";
      row.push_back(as_best(number(x), x >= best - 0.005) + star);
    }
    return row;
  }

  static std::string as_best(const std::string& text, bool best) {
    return best ? fmt::format("**{}**", text) : text;
  }

  void one_model(const ModelFigures& of) {
    document_.heading(of.model);
    std::vector<std::string> header = {
        "method",    "ranks",     "stages",       throughput_header(of.model), "speedup",
        "imbalance", "bubble, %", "planning, ms", "predicted step, ms"};
    if (o_.mode != StudyMode::simulate) header.push_back("rehearsed step, ms");
    if (o_.mode == StudyMode::measure) header.push_back("measured step, ms");
    if (o_.mode != StudyMode::simulate) header.push_back("difference, %");
    if (o_.mode == StudyMode::measure) header.push_back("test accuracy, %");
    std::vector<std::vector<std::string>> rows;
    for (const int ranks : o_.ranks) {
      const double best = best_speedup(of.model, ranks, [](const std::string&) { return true; });
      for (const std::string& method : o_.methods) {
        const Cell* cell = find(cells_, of.model, method, ranks);
        if (!cell || !cell->refusal.empty()) continue;
        rows.push_back(model_row(*cell, best));
        if (ranks == 1) break;  // on one rank all methods do the same
      }
    }
    document_.table(header, rows);
    for (const auto& [file, caption] : {std::pair{of.speedup, "speedup against ranks"},
                                        {of.stages, "work of every rank in a step"},
                                        {of.timeline, "a step as a timeline"},
                                        {of.loss, "training loss"},
                                        {of.graph, "stages"}})
      if (!file.empty()) document_.picture(file, of.model + ": " + caption);
  }

  // Uses images a second where the profile says how many images a micro-batch has.
  std::string throughput_header(const std::string& model) const {
    for (const Cell& cell : cells_)
      if (cell.key.model == model && cell.microbatch > 0) return "images/s";
    return "throughput";
  }

  std::vector<std::string> model_row(const Cell& cell, double best) const {
    const double x = speedup(cells_, cell);
    std::vector<std::string> row = {cell.key.ranks == 1 ? "any" : cell.key.method,
                                    std::to_string(cell.key.ranks),
                                    cell.stages,
                                    throughput(cells_, cell),
                                    as_best(number(x), cell.key.ranks > 1 && x >= best - 0.005),
                                    number(cell.imbalance),
                                    number(cell.shares().bubble_fraction * 100, 1),
                                    number(cell.planning_s * 1e3),
                                    number(cell.predicted.step_s * 1e3)};
    if (o_.mode == StudyMode::simulate) return row;
    row.push_back(cell.rehearsed ? number(cell.rehearsed->step_s * 1e3) : "-");
    if (cell.measured) row.push_back(number(cell.measured->step_s * 1e3));
    row.push_back(fmt::format("{:+.1f}", (cell.step_s() / cell.predicted.step_s - 1) * 100));
    if (o_.mode == StudyMode::measure)
      row.push_back(
          cell.measured && cell.measured->test_accuracy ? number(*cell.measured->test_accuracy * 100) : "-");
    return row;
  }

  // Lists what is missing, and why.
  void open_ends() {
    std::vector<std::vector<std::string>> rows;
    for (const Cell& cell : cells_)
      if (!cell.refusal.empty())
        rows.push_back({fmt::format("{} by {} on {}: {}", cell.key.model, cell.key.method, cell.key.ranks,
                                    cell.refusal)});
    if (rows.empty() && figures_.missing.empty() && sweep_.failures.empty()) return;
    document_.heading("What is not there");
    for (const std::string& sentence : figures_.missing) document_.paragraph(sentence);
    for (const std::string& sentence : sweep_.failures) document_.paragraph("Failed: " + sentence);
    if (!rows.empty()) document_.table({"no plan, or none that can run"}, rows);
  }

  const SpeedupOptions& o_;
  const std::vector<Cell>& cells_;
  const Sweep& sweep_;
  const StudyFigures& figures_;
  ReportDocument document_;
};

}  // namespace

ReportDocument speedup_report(const SpeedupOptions& o, const Sweep& sweep, const StudyFigures& figures) {
  return Report(o, sweep, figures).write();
}

std::string starved_cells(const std::vector<Cell>& cells) {
  constexpr size_t most = 5;
  std::vector<std::string> names;
  for (const Cell& cell : cells)
    if (starved(cell)) names.push_back(cell.key.name());
  if (names.empty()) return "";
  const size_t all = names.size();
  if (all > most) names.resize(most), names.push_back("…");
  return fmt::format(
      "In {} of {} a rank was ready to run but had no core for more than {:.0f} % of its time, so these "
      "figures are doubtful ({}): delete them in cells/ and start the same command when nothing else runs "
      "there, with a core for every rank",
      all, counted(int64_t(cells.size()), "cell"), doubtful_starved_share * 100, fmt::join(names, ", "));
}

std::string speedup_summary(const SpeedupOptions& o, const std::vector<Cell>& cells) {
  std::vector<Table::Column> columns = {{"model", Table::Align::left}, {"ranks"}};
  for (const std::string& method : o.methods) columns.push_back({method});
  Table table(columns);
  for (const std::string& model : o.models)
    for (const int ranks : o.ranks) {
      if (ranks == 1 && o.ranks.size() > 1) continue;
      std::vector<std::string> row = {model, std::to_string(ranks)};
      for (const std::string& method : o.methods) {
        const Cell* cell = find(cells, model, method, ranks);
        row.push_back(cell && cell->refusal.empty() ? number(speedup(cells, *cell)) : "-");
      }
      table.add(row);
    }
  return fmt::format("Speedup over one rank, {}\n{}", participle(o.mode), table.str());
}

}  // namespace antichain
