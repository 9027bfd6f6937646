// Defines operators and a backend without arithmetic, for tests of graphs and lowering.
#pragma once

#include "framework/backend.h"
#include "framework/graph.h"

namespace antichain::test {

class Input : public Op {
 public:
  std::string_view type() const override { return "input"; }
  std::string str() const override { return "input"; }
  Role role() const override { return Role::input; }
  Signature infer(std::span<const Shape>) const override { return with({2, 16, 4, 4}); }
  static Signature with(Shape y, std::vector<ParamSpec> params = {}) {
    Signature s;
    s.y = {y};
    s.params = std::move(params);
    return s;
  }
};

// Keeps the shape; has a parameter when asked.
class Pointwise : public Op {
 public:
  explicit Pointwise(std::string type, bool learns = false) : type_(std::move(type)), learns_(learns) {}
  std::string_view type() const override { return type_; }
  std::string str() const override { return type_; }
  Signature infer(std::span<const Shape> x) const override {
    return learns_ ? Input::with(x[0], {{"weight", {x[0][1]}, {}}}) : Input::with(x[0]);
  }

 private:
  std::string type_;
  bool learns_;
};

// "blocked" operators want nChw16c, "plain" ones plain, "any" ones what they are offered.
class StandInBackend : public Backend {
 public:
  explicit StandInBackend(std::string name = "stand-in") : name_(std::move(name)) {
    auto wants = [](auto choose) {
      return [choose](const Op& op, std::span<const Shape> x, std::span<const Layout> offered, Precision) {
        const Layout layout = choose(offered[0]);
        const size_t params = op.infer(x).params.size();
        return Lowering{
            .x = std::vector(x.size(), layout), .y = layout, .params = std::vector(params, Layout::plain)};
      };
    };
    kernels_["blocked"] = {wants([](Layout) { return Layout::nChw16c; }), {}};
    kernels_["plain"] = {wants([](Layout) { return Layout::plain; }), {}};
    kernels_["any"] = {wants([](Layout offered) { return offered; }), {}};
    kernels_["reorder"] = {[](const Op&, std::span<const Shape>, std::span<const Layout> offered, Precision) {
                             const bool plain = offered[0] == Layout::plain;
                             return Lowering{.x = {offered[0]}, .y = plain ? Layout::nChw16c : Layout::plain};
                           },
                           {}};
  }
  std::string name() const override { return name_; }
  std::string description() const override { return "no arithmetic"; }
  std::shared_ptr<std::byte> allocate(int64_t bytes) const override { return allocate_host(bytes); }
  void copy(const Context&, const Tensor&, const Tensor&) const override {}
  void add(Context&, const Tensor&, const Tensor&) const override {}

 private:
  const std::string name_;
};

}  // namespace antichain::test
