#include "app/experiment/experiment_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/child_process.h"
#include "app/report/gnuplot_script.h"
#include "app/report/timeline_figure.h"
#include "framework/error.h"
#include "framework/json.h"
#include "framework/paths.h"
#include "partition/search/dot.h"
#include "pipeline/schedule/schedule.h"
#include "pipeline/simulate/simulate.h"

namespace antichain {
namespace {

namespace fs = std::filesystem;

size_t number_of(const std::string& method) {
  const auto& all = study_methods();
  return size_t(std::ranges::find(all, method, &StudyMethod::name) - all.begin());
}

// Each method has a marker, a dash and a colour, the same in every picture.
std::string line_style(const std::string& method) {
  constexpr std::array marks = {7, 5, 9, 11, 13, 4, 6, 8, 10, 12};
  const size_t i = number_of(method);
  return fmt::format("lc rgb '{}' lw 2 dt {} pt {} ps 0.9", plot_colour(i), i < plot_colours ? 1 + i % 4 : 2,
                     marks[i % marks.size()]);
}

std::string bar_style(size_t i) {
  return fmt::format("lc rgb '{}' fill {}", plot_colour(i), i < plot_colours ? "solid 0.9" : "pattern 2");
}

// Draws bars for several methods or ranks, in as many groups as there are names below. The axis leaves room
// above the highest bar, `most`.
std::string bars(size_t groups, double most) {
  return fmt::format(
      "set style data histograms\nset style histogram clustered gap 1.5\nset boxwidth 0.95 relative\n"
      "set datafile missing 'NaN'\nset yrange [0:{:.6g}]\nset xtics {}\n",
      most > 0 ? most * 1.08 : 1, groups > 5 ? "rotate by -20" : "norotate");
}

class Painter {
 public:
  Painter(const SpeedupOptions& o, const ResultsFolder& out, const std::vector<Cell>& cells)
      : o_(o), out_(out), cells_(cells), script_(out.path()), ranks_(o.ranks), label_(participle(o.mode)) {
    std::ranges::sort(ranks_);
  }

  StudyFigures draw() {
    StudyFigures figures{.overviews = {overview(true), overview(false)}};
    for (const std::string& model : o_.models)
      figures.models.push_back({.model = model,
                                .speedup = speedup_lines(model),
                                .stages = stage_bars(model),
                                .timeline = timeline(model),
                                .loss = loss_lines(model)});
    run_gnuplot(figures);
    draw_graphs(figures);
    return figures;
  }

 private:
  int most_ranks() const { return ranks_.back(); }

  const Cell* find(const std::string& model, const std::string& method, int ranks) const {
    const auto it = std::ranges::find_if(cells_, [&](const Cell& c) {
      return c.key.model == model && c.key.method == method && c.key.ranks == ranks && c.refusal.empty();
    });
    return it == cells_.end() ? nullptr : &*it;
  }

  // Returns the cell whose plan is drawn: the first method that has one, on the most ranks.
  const Cell* shown(const std::string& model) const {
    for (const std::string& method : o_.methods)
      if (const Cell* cell = find(model, method, most_ranks())) return cell;
    return nullptr;
  }

  std::string speedup_lines(const std::string& model) {
    if (ranks_.size() < 2) return "";
    PlotList plots;
    plots.add("x with lines lc rgb '#999999' dt 3 title 'as many times as ranks'");
    bool any = false;
    for (const std::string& method : o_.methods) {
      std::string rows;
      for (const int ranks : ranks_)
        if (const Cell* cell = find(model, method, ranks))
          rows += fmt::format("{} {:.5g}\n", ranks, speedup(cells_, *cell));
      if (rows.empty()) continue;
      any = true;
      plots.add(fmt::format("{} using 1:2 with linespoints {} title {}", script_.data(rows),
                            line_style(method), gnuplot_string(method)));
    }
    if (!any) return "";
    const std::string file = script_.begin({.name = "speedup-" + model,
                                            .title = fmt::format("{}, {}", model, label_),
                                            .x = "ranks",
                                            .y = "speedup over one rank"});
    std::string tics;
    for (const int ranks : ranks_) tics += fmt::format("{}{}", tics.empty() ? "" : ",", ranks);
    script_.add(fmt::format("set xtics ({})\nset xrange [{}:{}]\nset yrange [0:{}]\n{}", tics,
                            ranks_.front() - 0.2, most_ranks() + 0.2, most_ranks() + 0.2, plots.str()));
    return file;
  }

  // The difference to the longest bar of a method is imbalance.
  std::string stage_bars(const std::string& model) {
    std::string rows;
    size_t groups = 0;
    double most_ms = 0;
    for (const std::string& method : o_.methods) {
      const Cell* cell = find(model, method, most_ranks());
      if (!cell) continue;
      ++groups;
      rows += gnuplot_string(method);
      for (const double s : cell->shares().busy_s) {
        rows += fmt::format(" {:.5g}", s * 1e3);
        most_ms = std::max(most_ms, s * 1e3);
      }
      rows += "\n";
    }
    if (rows.empty()) return "";
    const std::string data = script_.data(rows);
    PlotList plots;
    for (int rank = 0; rank < most_ranks(); ++rank)
      plots.add(fmt::format("{} using {}{} {} title 'rank {}'", data, rank + 2, rank == 0 ? ":xtic(1)" : "",
                            bar_style(size_t(rank)), rank));
    const std::string kind = o_.mode == StudyMode::measure ? "predicted" : label_;
    const std::string file = script_.begin(
        {.name = "stages-" + model,
         .title = fmt::format("{}: work of each of {} ranks in a step, {}", model, most_ranks(), kind),
         .x = "method",
         .y = "busy, ms",
         .width = 1000});
    script_.add(bars(groups, most_ms) + plots.str());
    return file;
  }

  std::string timeline(const std::string& model) {
    const Cell* cell = shown(model);
    if (!cell) return "";
    std::string how;
    const std::vector<TimelineBox> boxes = boxes_of(*cell, how);
    return draw_timeline(script_, boxes, cell->key.ranks, "timeline-" + model,
                         fmt::format("{}: a step of {} micro-batches on {} ranks by {}, {}", model,
                                     o_.microbatches, cell->key.ranks, cell->key.method, how));
  }

  // Returns the recorded boxes of a rehearsal or a training, else the simulated ones.
  std::vector<TimelineBox> boxes_of(const Cell& cell, std::string& how) const {
    std::vector<TimelineBox> boxes;
    const std::string trace = out_.path() + "/work/" + cell.key.name() + ".trace.json";
    if ((cell.rehearsed || cell.measured) && exists(trace)) {
      how = participle(cell.key.mode);
      const nlohmann::json recorded = parse_json(read_file(trace), trace);
      for (const nlohmann::json& e : recorded.at("traceEvents"))
        if (e.value("ph", "") == "X") {
          const double start_s = e.at("ts").get<double>() * 1e-6;
          boxes.push_back({e.at("tid").get<int>(), e.at("cat").get<std::string>(),
                           e.value("args", nlohmann::json::object()).value("microbatch", -1), start_s,
                           start_s + e.at("dur").get<double>() * 1e-6});
        }
      return boxes;
    }
    how = cell.measured ? "predicted" : "simulated";
    const StudyNetwork network = study_network(o_, out_, cell.key.model, cell.key.ranks);
    const Plan plan = plan_of(cell, network.profile);
    const PlanOptions options =
        plan_options(o_, network.profile, study_method(cell.key.method), cell.key.ranks);
    const Schedule schedule = schedule_of(cell, network.profile, plan, options);
    for (const Event& e : simulate(schedule, plan, network.profile, options.cluster).events)
      boxes.push_back(
          {e.rank, std::string(category_of(e.action.verb)), e.action.microbatch, e.start_s, e.end_s});
    return boxes;
  }

  std::string loss_lines(const std::string& model) {
    PlotList plots;
    size_t line = 0;
    for (const Cell& cell : cells_) {
      if (cell.key.model != model || !cell.measured || cell.measured->loss.size() < 2) continue;
      std::string rows;
      for (const auto& [step, loss] : cell.measured->loss) rows += fmt::format("{} {:.6g}\n", step, loss);
      // Equal curves cover each other: so the first is broad, and the others are dashed.
      plots.add(fmt::format("{} using 1:2 with lines lc rgb '{}' lw {} dt {} title {}", script_.data(rows),
                            plot_colour(line), line == 0 ? 5 : 2, 1 + line % 5,
                            gnuplot_string(fmt::format("{} on {}", cell.key.method, cell.key.ranks))));
      ++line;
    }
    if (plots.empty()) return "";
    const std::string file = script_.begin({.name = "loss-" + model,
                                            .title = model + ": training loss, measured",
                                            .x = "step",
                                            .y = "loss (cross-entropy, nats)"});
    script_.add(plots.str());
    return file;
  }

  // Pipelines without and with replicas have separate pictures, because ten bars per model can't be told
  // apart.
  std::string overview(bool straight) {
    std::vector<std::string> methods;
    for (const std::string& method : o_.methods)
      if ((study_method(method).kind == StudyMethod::Kind::straight) == straight) methods.push_back(method);
    if (methods.empty()) return "";
    double most = 0;
    std::string rows;
    for (const std::string& model : o_.models) {
      rows += gnuplot_string(model);
      for (const std::string& method : methods) {
        const Cell* cell = find(model, method, most_ranks());
        rows += cell ? fmt::format(" {:.5g}", speedup(cells_, *cell)) : " NaN";
        if (cell) most = std::max(most, speedup(cells_, *cell));
      }
      rows += "\n";
    }
    const std::string data = script_.data(rows);
    PlotList plots;
    for (size_t m = 0; m < methods.size(); ++m)
      plots.add(fmt::format("{} using {}{} {} title {}", data, m + 2, m == 0 ? ":xtic(1)" : "",
                            bar_style(number_of(methods[m])), gnuplot_string(methods[m])));
    const std::string file = script_.begin(
        {.name = straight ? "overview" : "overview-replicas",
         .title = fmt::format("Speedup on {} ranks, {}{}", most_ranks(), label_,
                              straight ? "" : ", with replicas"),
         .x = "model",
         .y = "speedup over one rank",
         .width = int(std::clamp<size_t>(400 + 12 * o_.models.size() * methods.size(), 700, 1200))});
    script_.add(bars(o_.models.size(), most) + plots.str());
    return file;
  }

  void run_gnuplot(StudyFigures& figures) {
    const std::string script = out_.file("figures", "figures.gp"), log = out_.file("logs", "gnuplot.log");
    write_file(script, script_.str());
    std::string why;
    if (!has_program("gnuplot"))
      why = "No plots: gnuplot is not installed (on Debian: gnuplot-nox).";
    else if (const int code = run_child({"gnuplot", script}, log); code != 0)
      why = fmt::format("No plots: gnuplot ended with code {}: {}", code, last_line(log));
    if (why.empty()) return;
    figures.missing.push_back(why);
    figures.overviews.clear();
    for (ModelFigures& of : figures.models) of.speedup = of.stages = of.timeline = of.loss = "";
  }

  void draw_graphs(StudyFigures& figures) {
    if (!has_program("dot")) {
      figures.missing.push_back("No graphs of models: Graphviz is not installed (on Debian: graphviz).");
      return;
    }
    for (ModelFigures& of : figures.models) {
      const Cell* cell = shown(of.model);
      if (!cell) continue;
      const StudyNetwork network = study_network(o_, out_, of.model, cell->key.ranks);
      const std::string name = "model-" + of.model, file = "figures/" + name + ".svg";
      const std::string dot = out_.file("figures", name + ".dot"), log = out_.file("logs", "dot.log");
      write_file(dot, to_dot(plan_of(*cell, network.profile), network.profile));
      const int code = run_child({"dot", "-Tsvg", dot, "-o", out_.path() + "/" + file}, log);
      if (code == 0)
        of.graph = file;
      else
        figures.missing.push_back(
            fmt::format("No graph of {}: dot ended with code {}: {}", of.model, code, last_line(log)));
    }
  }

  Plan plan_of(const Cell& cell, const Profile& profile) const {
    const std::string file = out_.path() + "/plans/" + cell.key.name() + ".json";
    return plan_from_json(read_file(file), file, profile);
  }

  Schedule schedule_of(const Cell& cell, const Profile& profile, const Plan& plan,
                       const PlanOptions& options) const {
    if (!o_.schedule.planned()) return o_.schedule.schedule(profile, plan, options);
    const std::string file = out_.path() + "/plans/" + cell.key.name() + planned_schedule_ending;
    return parse_schedule(read_file(file), file);
  }

  const SpeedupOptions& o_;
  const ResultsFolder& out_;
  const std::vector<Cell>& cells_;
  GnuplotScript script_;
  std::vector<int> ranks_;  // ascending
  const std::string label_;
};

}  // namespace

StudyFigures draw_figures(const SpeedupOptions& o, const ResultsFolder& out, const std::vector<Cell>& cells) {
  return Painter(o, out, cells).draw();
}

}  // namespace antichain
