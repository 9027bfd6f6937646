#include "app/train/resume.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "app/cli/number_text.h"
#include "app/cli/overwriting.h"
#include "app/train/rate_options.h"
#include "framework/error.h"
#include "framework/files/checkpoint_folder.h"
#include "framework/files/checkpoint_remains.h"
#include "framework/paths.h"
#include "framework/random.h"
#include "framework/say.h"
#include "pipeline/stage/stage_state.h"
#include "pipeline/transport/agree.h"
#include "pipeline/transport/shared_folder.h"

namespace antichain {
namespace {

constexpr int64_t most_hashed = 4096;  // images
constexpr const char* length = "steps in all";
constexpr const char* course_length = "steps of the learning rate's course";  // where it outlasts the run
constexpr const char* data_name = "data";
constexpr const char* hashes[] = {"training data", "test data"};
constexpr const char* normalisation = "mean and deviation";
constexpr const char* replicas_setting = "replicas";
constexpr const char* older_setting = "weights that backwards read";
constexpr const char* other_bits = ": the numbers will not be the same to the last bit";
const std::set<std::string> kept_by_same_bits = {"device",
                                                 "threads"};  // a cut does not change the bits, but these do

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// A folder with another run's checkpoints must not get this run's as well.
void refuse_foreign(const CheckpointFolder& folder, const std::string& resumed, bool keep_best) {
  if (folder.path().empty()) return;
  std::vector<std::string> there = folder.list();
  if (resumed.empty() && there.empty() && keep_best && why_no_checkpoint(folder.best(), true).empty())
    throw Error(
        fmt::format("--keep-best would replace {}, the best checkpoint of an earlier run", folder.best()),
        "go on from it with --resume, or name an empty folder", ExitCode::usage);
  if (there.empty()) return;
  if (resumed.empty())
    throw Error(fmt::format("{} has checkpoints already, the newest is {}", folder.path(), there.front()),
                "go on from it with --resume auto, or name an empty folder", ExitCode::usage);
  there.push_back(folder.best());
  if (std::ranges::find(there, resumed) == there.end())
    throw Error(fmt::format("{} has checkpoints already, but the one to resume from is elsewhere: {}",
                            folder.path(), resumed),
                "name an empty folder for those to come", ExitCode::usage);
}

// Throws a usage Error where something of the user's would have to make way for checkpoints.
void check_names_are_free(const CheckpointFolder& folder, bool keep_best) {
  check_no_output_is("which --checkpoint writes", [&](const std::string& file, const std::string&) {
    return are_one(parent_of(file), folder.path()) &&
           CheckpointFolder::is_name_of_ours(file.substr(file.rfind('/') + 1));
  });
  if (!keep_best || (!exists(folder.best()) && !is_link(folder.best()))) return;
  if (const std::string why = why_no_checkpoint(folder.best(), true); !why.empty())
    throw Error(fmt::format("--keep-best would replace {}, which is no checkpoint: {}", folder.best(), why),
                "move it, or name another folder with --checkpoint", ExitCode::usage);
}

std::string find_checkpoint(const CheckpointCommandOptions& o) {
  if (o.resume.empty()) return "";
  const bool automatic = o.resume == "auto";
  const std::string place = without_slash(automatic ? o.folder : o.resume);
  if (!automatic && is_checkpoint(place)) return verify_checkpoint(place), place;
  const std::string whole = newest_whole_checkpoint(place);
  if (automatic || !whole.empty()) return whole;
  throw Error(fmt::format("there is no checkpoint in {}", place),
              "name a folder that --checkpoint was given, or one of the folders step-… and best in it");
}

// Lists the tensors that differ between the run and the checkpoint. A slot that the run's optimiser does not
// keep is no difference: older checkpoints have one for a momentum of 0, too.
std::vector<std::string> tensor_differences(const Manifest& manifest, const Graph& graph,
                                            const Optimiser& optimiser) {
  Facts there, here;
  const auto text = [](const CheckpointTensor& t) {
    return fmt::format("{} of {}", t.is_float ? "float32" : "int64",
                       t.shape.empty() ? "one number" : fmt::format("{}", fmt::join(t.shape, " x ")));
  };
  for (const CheckpointFile& file : manifest.files)
    for (const CheckpointTensor& t : file.tensors) there["the tensor " + t.path] = text(t);
  for (const CheckpointTensor& t : checkpoint_tensors(graph, optimiser))
    here["the tensor " + t.path] = text(t);
  std::erase_if(there, [&](const auto& fact) {
    return fact.first.find('/') != std::string::npos && !here.contains(fact.first);
  });
  return differences(there, here);
}

std::string some(const std::vector<std::string>& sentences) {
  constexpr size_t most = 12;
  const std::vector<std::string> first(sentences.begin(),
                                       sentences.begin() + std::ptrdiff_t(std::min(most, sentences.size())));
  return fmt::format("{}{}", fmt::join(first, "; "),
                     sentences.size() > most ? fmt::format("; and {} more", sentences.size() - most) : "");
}

// Returns the number of steps of the learning rate's schedule.
const std::string& course_of(const Facts& recipe) {
  return recipe.at(recipe.contains(course_length) ? course_length : length);
}

// A user may change a run's length. But where the learning rate's schedule depends on it, this is another run
// from here on. Returns whether that has to be said.
bool check_length(const Manifest& m, const RunFacts& run) {
  const int64_t total = std::stoll(run.recipe.at(length));
  if (m.position.step > total)
    throw Error(fmt::format("the checkpoint has done {} already, but the run is to have {}",
                            counted(m.position.step, "step"), total),
                "ask for more --steps or --epochs", ExitCode::usage);
  return m.recipe.contains(length) && course_of(m.recipe) != course_of(run.recipe) &&
         run.recipe.at("learning rate") != "constant";
}

// Completes the facts of a checkpoint of an older revision, which stated fewer. A missing fact is assumed to
// be as it is here, with a warning where this differs from the option's default.
Facts completed(Facts there, const Facts& here, const Facts& usual, const std::string& checkpoint) {
  for (const auto& [name, value] : usual) {
    const auto now = here.find(name);
    if (there.contains(name) || now == here.end()) continue;
    there[name] = now->second;
    if (now->second != value)
      warn(fmt::format("{} is of an older version and does not say its {}: it is taken to be {}, as here",
                       checkpoint, name, now->second));
  }
  return there;
}

// Checks the position in a run of so many steps an epoch, and from one evaluation to the next. A manifest is
// sealed, so this refuses only forged ones.
void check_position(const TrainPosition& p, const RunFacts& run, const std::string& checkpoint) {
  const int64_t steps_per_epoch = run.steps_per_epoch, period = run.steps_per_evaluation;
  const int64_t counted_most = p.step % period == 0 ? period : p.step % period;  // by the sums
  const bool right = p.step >= 0 && p.epoch == p.step / steps_per_epoch &&
                     p.batch == p.step % steps_per_epoch && p.epoch_steps >= 0 &&
                     p.epoch_steps <= counted_most && std::isfinite(p.epoch_loss) && p.epoch_correct >= 0 &&
                     p.epoch_correct <= double(INT64_MAX) && p.epoch_s >= 0 && p.best.step <= p.step &&
                     p.best.since >= 0;
  if (!right)
    throw Damaged(
        fmt::format("{} says that it is at step {}, epoch {}, batch {} with {} counted, which contradict "
                    "each other where an epoch has {}",
                    checkpoint, p.step, p.epoch, p.batch, counted(p.epoch_steps, "step"),
                    counted(steps_per_epoch, "step")),
        "take an older checkpoint; a manifest can't be edited");
}

void check_belongs(const Manifest& m, const RunFacts& run, const Graph& graph, const Optimiser& optimiser,
                   const std::string& checkpoint) {
  std::vector<std::string> all = differences(completed(m.model, run.model, run.usual, checkpoint), run.model);
  Facts there = completed(m.recipe, run.recipe, run.usual, checkpoint), here = run.recipe;
  for (const char* own : {length, course_length}) there.erase(own), here.erase(own);
  // The same images may have another name: the file was renamed, say.
  if (std::ranges::all_of(hashes, [&](const char* hash) { return there[hash] == here[hash]; }))
    there.erase(data_name), here.erase(data_name);
  for (std::string& sentence : differences(there, here)) all.push_back(std::move(sentence));
  if (all.empty()) all = tensor_differences(m, graph, optimiser);
  if (!all.empty())
    throw Error(fmt::format("{} does not belong to this run: {}", checkpoint, some(all)),
                "resume with the options it was trained with");
  check_position(m.position, run, checkpoint);
  if (check_length(m, run))
    warn(fmt::format(
        "the learning rate's course was to have {} steps and now has {}: it follows the new length "
        "from step {} on, so the result is neither run's",
        course_of(m.recipe), course_of(run.recipe), m.position.step + 1));
  for (const std::string& name : kept_by_same_bits)
    for (const std::string& sentence : differences(
             {{name, m.setting.contains(name) ? m.setting.at(name) : "?"}}, {{name, run.setting.at(name)}}))
      warn(sentence + other_bits);
}

}  // namespace

std::string fingerprint(const DataSet& data) { return fmt::format("{:016x}", data.fingerprint(most_hashed)); }

RunFacts run_facts(const TrainCommandOptions& o, const DataSplits& data, const Rank& rank) {
  RunFacts run;
  if (!rank.prints() || (o.checkpoint.folder.empty() && o.checkpoint.resume.empty())) return run;
  const int64_t per_epoch = data.train->size() / o.network.batch;
  const TrainOptions training = train_options(o, per_epoch);
  for (const OptionRow& row : o.rows) {
    if (*row.changes.fact == 0) continue;
    Facts& facts = row.changes.kind == OptionKind::network ? run.model : run.recipe;
    facts[row.changes.fact] = row.fact();
    run.usual[row.changes.fact] = row.usual_fact;
  }
  run.usual[normalisation] = describe(Normalisation());
  const auto text = [](const auto& x) { return fmt::format("{}", x); };
  const ImageSet* images = data.train->images();
  if (images) run.model["image"] = images->image_shape().str();
  if (o.recipe_warmup_steps > 0)
    run.recipe[warmup_fact] = text(rate_course(o, per_epoch).options().warmup_steps);
  run.recipe[length] = text(total_steps(training, per_epoch));
  run.recipe[data_name] = data.train->name();
  run.recipe["training images"] = text(data.train->size());
  run.recipe["test images"] = text(data.test->size());
  run.recipe[hashes[0]] = fingerprint(*data.train);
  run.recipe[hashes[1]] = fingerprint(*data.test);
  run.recipe[normalisation] = describe(images ? images->normalisation() : Normalisation());
  run.steps_per_epoch = per_epoch;
  run.steps_per_evaluation = o.evaluation.every > 0 ? o.evaluation.every : per_epoch;
  const std::string course = text(rate_course(o, per_epoch).total_steps());
  if (course != run.recipe.at(length)) run.recipe[course_length] = course;
  run.setting = {{"device", rank.context.backend().description()},
                 {"threads", text(rank.context.threads())},
                 {"ranks", text(rank.job.size())},
                 {"schedule", o.schedule.schedule}};
  return run;
}

Beginning find_beginning(const TrainCommandOptions& o, const RunFacts& run, const Graph& graph,
                         const Rank& rank) {
  Beginning beginning;
  if (o.checkpoint.folder.empty() && o.checkpoint.resume.empty()) return beginning;
  const Progress::Disk disk(rank.job.activity(), "looking for checkpoints");
  const CheckpointFolder folder(without_slash(o.checkpoint.folder));
  if (!folder.path().empty()) {
    on_rank_zero(rank.job, [&] {
      beginning.lock = FolderLock(folder.path());
      check_names_are_free(folder, o.evaluation.keep_best);
      folder.clean();
      return "";
    });
    check_shared_folder(folder.path(), rank.job);
  }
  const std::string found = on_rank_zero(rank.job, [&] {
    const std::string checkpoint = find_checkpoint(o.checkpoint);
    refuse_foreign(folder, checkpoint, o.evaluation.keep_best);
    if (checkpoint.empty()) return std::string();
    const std::string text = read_manifest(checkpoint);
    check_belongs(manifest_from_json(text, checkpoint), run, graph, *make_optimiser(o.optimiser), checkpoint);
    return checkpoint + '\0' + text;
  });
  if (found.empty()) return beginning;
  beginning.checkpoint = found.substr(0, found.find('\0'));
  beginning.manifest = manifest_from_json(found.substr(found.find('\0') + 1), beginning.checkpoint);
  return beginning;
}

// Lists the nodes in order by the number of replicas of their stage: "2 to layer2.0.conv2, then 1".
void add_plan(Facts& setting, const Plan& plan, const Profile& profile, const Schedule& schedule) {
  const std::vector<int> stage_of = plan.stage_of(int(profile.nodes.size()));
  std::string replicas, last_node;
  size_t last = 0;  // replicas
  for (size_t id = 0; id < stage_of.size(); ++id) {
    if (stage_of[id] < 0) continue;
    const size_t count = plan.stages[size_t(stage_of[id])].ranks.size();
    if (last == 0) replicas = std::to_string(count);
    if (last != 0 && count != last) replicas += fmt::format(" to {}, then {}", last_node, count);
    last = count;
    last_node = profile.nodes[id].name;
  }
  setting["plan"] = plan_hash(plan);
  setting[replicas_setting] = replicas;
  if (has_delays(schedule))
    setting[older_setting] = schedule.stashes ? "those of their forwards" : "the newest";
}

void go_on_from(const Beginning& beginning, const RunFacts& run, RankModel& model, const Rank& rank) {
  const auto there = beginning.manifest.setting.find(older_setting), here = run.setting.find(older_setting);
  if (there != beginning.manifest.setting.end() && here != run.setting.end() && there->second != here->second)
    throw Error(fmt::format("{}: the {} were {}, but are {} in this run", beginning.checkpoint, older_setting,
                            there->second, here->second),
                "resume with its --schedule", ExitCode::usage);
  {
    const Progress::Disk disk(rank.job.activity(), "reading " + beginning.checkpoint);
    restore(model, beginning.checkpoint, beginning.manifest);
  }
  if (!rank.prints()) return;
  const auto before = beginning.manifest.setting.find(replicas_setting);
  const std::string had = before == beginning.manifest.setting.end() ? "1" : before->second;
  for (const std::string& sentence :
       differences({{replicas_setting, had}}, {{replicas_setting, run.setting.at(replicas_setting)}}))
    warn(sentence + other_bits);
  fmt::print("Going on from {}: {} done\n\n", beginning.checkpoint, counted(beginning.step(), "step"));
  std::fflush(stdout);
}

CheckpointOptions checkpoint_options(const CheckpointCommandOptions& o, const RunFacts& run,
                                     const Beginning& beginning) {
  const Every every = parse_every(o.every);
  return {.folder = without_slash(o.folder),
          .every_steps = every.steps,
          .every_s = every.seconds,
          .keep = o.keep,
          .model = run.model,
          .recipe = run.recipe,
          .setting = run.setting,
          .resumed = beginning.checkpoint};
}

}  // namespace antichain
