#include "app/options/checkpoint_options.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cctype>
#include <cstdlib>

#include "app/cli/option_row.h"
#include "framework/error.h"
#include "framework/parse_number.h"
#include "framework/units.h"

namespace antichain {
namespace {

constexpr double most_seconds = 1e9;
constexpr int64_t most_steps = 1'000'000'000;

std::optional<Deadline> end_of_slurm_job() {
  using namespace std::chrono;
  const char* text = std::getenv("SLURM_JOB_END_TIME");
  const auto end = text ? parse_number<int64_t>(text) : std::nullopt;
  if (!end || *end <= 0 || *end > int64_t(1) << 40) return {};
  const auto left = system_clock::time_point(std::chrono::seconds(*end)) - system_clock::now();
  return Deadline{steady_clock::now() + duration_cast<steady_clock::duration>(left),
                  "the job's time at Slurm"};
}

}  // namespace

void add_checkpoint_options(CLI::App& app, CheckpointCommandOptions& o) {
  using enum OptionKind;
  const OptionGroup add(app, "Checkpoints");
  add("--checkpoint DIR", o.folder, {},
      "save the run in this folder, at its end and as --checkpoint-every says", {output});
  add("--checkpoint-every N|TIME", o.every, {}, "also every so many steps, or so much time: 500, 10min, 2h",
      {output});
  add("--keep N", o.keep, whole_between(1, 1'000'000), "remove all but the newest so many checkpoints",
      {output});
  add("--resume DIR|auto", o.resume, {.names = {"auto"}},
      "go on from a checkpoint, or the newest whole one of a folder; auto: of --checkpoint's, if there is "
      "any",
      {extent});
  add("--max-time TIME", o.max_time, {}, "save and stop before so much time is over: 1h30m, 90min, 5400",
      {extent});
  app.get_option("--keep")->needs("--checkpoint");
}

double parse_duration(const std::string& given, const std::string& option) {
  const std::optional<double> seconds = parse_time(given);
  if (!seconds || *seconds <= 0 || *seconds > most_seconds)
    throw Error(fmt::format("{} {} is no time", option, given),
                "write 1h30m, 90min, 45s, or a number of seconds", ExitCode::usage);
  return *seconds;
}

Every parse_every(const std::string& text) {
  if (text.empty()) return {};
  const auto steps = parse_number<int64_t>(text);
  if (!steps && std::isdigit(static_cast<unsigned char>(text.back())))  // "1.5" has no unit
    throw Error(fmt::format("--checkpoint-every {} is no whole number of steps", text),
                "write a number of steps, or a time such as 10min", ExitCode::usage);
  if (!steps) return {.seconds = parse_duration(text, "--checkpoint-every")};
  if (*steps < 1 || *steps > most_steps)
    throw Error(fmt::format("--checkpoint-every {} is not between 1 and {}", text, most_steps),
                "write a number of steps, or a time such as 10min", ExitCode::usage);
  return {.steps = *steps};
}

void check(const CheckpointCommandOptions& o) {
  parse_every(o.every);
  if (!o.max_time.empty()) parse_duration(o.max_time, "--max-time");
  if (!o.folder.empty()) return;
  for (const auto& [option, given] :
       {std::pair("--checkpoint-every", !o.every.empty()), std::pair("--resume auto", o.resume == "auto"),
        std::pair("--max-time", !o.max_time.empty())})
    if (given)
      throw Error(fmt::format("{} needs a folder for checkpoints", option), "add --checkpoint DIR",
                  ExitCode::usage);
}

std::optional<Deadline> deadline(const CheckpointCommandOptions& o) {
  if (o.folder.empty()) return {};
  std::optional<Deadline> end = end_of_slurm_job();
  if (!o.max_time.empty()) {
    const std::chrono::duration<double> most(parse_duration(o.max_time, "--max-time"));
    const auto at = o.started + std::chrono::duration_cast<std::chrono::steady_clock::duration>(most);
    if (!end || at < end->at) end = Deadline{at, "--max-time " + o.max_time};
  }
  return end;
}

}  // namespace antichain
