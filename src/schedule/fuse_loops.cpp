#include "schedule/fuse_loops.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "schedule/expr_cost.h"
#include "schedule/matrix_product.h"
#include "schedule/shifted_exponential.h"
#include "schedule/squared_deviation.h"
#include "schedule/window_sum.h"

namespace litz {
namespace {

constexpr size_t kMaxMembers = 64;
constexpr size_t kMaxCandidates = 4;
// Every further pass over a row computes again what the passes before did.
constexpr uint32_t kMaxStages = 4;
// A second pass over a row pays only while the row stays in cache.
constexpr int64_t kMaxRowElements = 256 * 1024;
constexpr int64_t kMuchWork = 256 * 1024;  // iterations that are worth a second kernel
// Elements, and of them in a row and in rows, that are read faster once they lie in another order.
constexpr int64_t kTurnedElements = 16 * 1024;
constexpr int64_t kTurnedExtent = 16;

// One load of an operation.
struct Access {
  BufferId buffer;
  std::vector<Index> position;
  bool runtime = false;
};

// The loops of an operation that may share a kernel.
struct Loops {
  std::vector<Index> outer;
  std::vector<Index> inner;  // of a reduction or a scan
  std::vector<Index> all() const {
    std::vector<Index> both = outer;
    both.insert(both.end(), inner.begin(), inner.end());
    return both;
  }
};

// What a group knows about a buffer that one of its members writes.
struct Written {
  std::vector<Index> position;  // over the group's variables
  uint32_t stage = 0;           // the first pass over a row in which the value is known
  bool full = false;            // written in the inner loop (or the group has none)
};

struct GroupState {
  int nodes = 0;
  std::unordered_map<BufferId, Written> written;
  std::unordered_map<BufferId, std::vector<Index>>
      reads;  // buffer -> one position it is read at, over the group's variables
  std::unordered_set<BufferId>
      scattered_reads;  // buffers read at more than one position, or at runtime positions
  bool has_consumers = false;
  // Its first member is a matrix product, a sum over windows or an attention, and stays one.
  bool is_product = false;
  BufferId logsumexp;  // of its attention, which other kernels alone read
};

std::vector<Index> rewrite_all(Substitution& substitution, std::span<const Index> expressions) {
  std::vector<Index> out;
  out.reserve(expressions.size());
  for (Index e : expressions) out.push_back(substitution.apply(e));
  return out;
}

bool depends_on_any(Index expression, std::span<const Index> variables) {
  return std::any_of(variables.begin(), variables.end(),
                     [&](Index v) { return v.is_symbol() && expression.depends_on(v); });
}

void make_unique(std::vector<GroupId>& groups) {
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
}

bool has_division(Index e) {
  switch (e.kind()) {
    case IndexKind::kConstant:
    case IndexKind::kSymbol:
      return false;
    case IndexKind::kFloorDiv:
    case IndexKind::kMod:
      return true;
    case IndexKind::kSum:
      return std::any_of(e.terms().begin(), e.terms().end(),
                         [](const auto& term) { return has_division(term.second); });
    case IndexKind::kProduct:
    case IndexKind::kMin:
    case IndexKind::kMax:
      return std::any_of(e.operands().begin(), e.operands().end(), has_division);
  }
  return false;
}

bool has_division(const LoopMapping& mapping) {
  return std::any_of(mapping.begin(), mapping.end(),
                     [](const auto& m) { return has_division(m.second); });
}

class Fuser {
 public:
  Fuser(const Program& program, const ScheduleOptions& options)
      : program_(program), options_(options), context_(program.indices()) {
    result_.group_of_buffer.resize(program.buffers().size());
  }

  FusionResult run(const std::vector<OperationId>& operations) {
    for (OperationId id : operations) visit(id);
    if (options_.fuse) merge_groups();
    drop_merged_groups();
    for (const Refusal& r : refusals_) {
      const Operation& producer = program_.operations()[r.producer];
      const Operation& consumer = program_.operations()[r.consumer];
      if (group_of(producer) != group_of(consumer))
        result_.not_fused.push_back({producer.origin, consumer.origin, r.reason});
    }
    return std::move(result_);
  }

 private:
  // ---- one operation ----

  struct Candidate {
    OperationId id;
    Loops loops;
    BufferId output;
    BufferId logsumexp;           // of an attention
    std::vector<Index> position;  // of an element of the output
    bool reduction = false;
    bool scan = false;
    bool product = false;  // a kernel of its own kind
    int nodes = 0;
    std::vector<Access> accesses;
    std::vector<GroupId> producers;  // each once
  };

  void visit(OperationId id) {
    const Operation& operation = program_.operations()[id];
    if (std::holds_alternative<Pointwise>(operation.v) ||
        std::holds_alternative<Reduction>(operation.v) ||
        std::holds_alternative<Scan>(operation.v) ||
        std::holds_alternative<Attention>(operation.v)) {
      Candidate c = candidate(id);
      c.producers = producers_of(operation);
      place(std::move(c));
    } else if (std::holds_alternative<ExternKernel>(operation.v)) {
      place_alone(id, FusionGroup::Kind::kExtern, {}, {});
    } else {
      place_alone(id, FusionGroup::Kind::kScatter, std::get<Scatter>(operation.v).loops.variables,
                  {});
    }
  }

  // Of a pointwise operation, a reduction, a scan or an attention; without its producers.
  Candidate candidate(OperationId id) const {
    const Operation& operation = program_.operations()[id];
    Candidate c;
    c.id = id;
    const std::vector<Expr> values = expressions(operation);
    c.product = options_.matrix_products && (matrix_product(operation) || window_sum(operation));
    if (const auto* op = std::get_if<Pointwise>(&operation.v)) {
      c.loops.outer = op->loops.variables;
      c.output = op->output;
    } else if (const auto* attention = std::get_if<Attention>(&operation.v)) {
      c.loops = {attention->loops.variables, attention->keys.variables};
      c.output = attention->output;
      c.logsumexp = attention->logsumexp;
      c.reduction = true;
      c.product = true;
    } else if (const auto* scan = std::get_if<Scan>(&operation.v)) {
      c.loops = {scan->loops.variables, {scan->loops.variables[scan->axis]}};
      c.loops.outer.erase(c.loops.outer.begin() + scan->axis);
      c.output = scan->output;
      c.scan = true;
    } else {
      const auto& reduction = std::get<Reduction>(operation.v);
      c.loops = {reduction.loops.variables, reduction.reduction.variables};
      c.output = reduction.output;
      c.reduction = true;
    }
    const auto* scan = std::get_if<Scan>(&operation.v);
    c.position = scan != nullptr ? scan->loops.variables : c.loops.outer;
    visit_postorder(values, [&](Expr e) {
      if (e.op() == ExprOp::kLoad) {
        c.accesses.push_back(
            {e.buffer(), {e.coordinates().begin(), e.coordinates().end()}, !e.operands().empty()});
      } else if (e.op() != ExprOp::kConstant) {
        ++c.nodes;
      }
    });
    return c;
  }

  std::vector<GroupId> producers_of(const Operation& operation) {
    std::vector<GroupId> groups;
    for (BufferId read : buffers_read(operation)) groups.push_back(result_.group_of_buffer[read]);
    for (BufferId written : buffers_written(operation)) {
      // Overwriting waits for everybody who reads or writes the old value.
      groups.push_back(result_.group_of_buffer[written]);
      if (!overwrites(operation, written)) continue;
      const auto readers = readers_.find(written);
      if (readers != readers_.end())
        groups.insert(groups.end(), readers->second.begin(), readers->second.end());
    }
    std::erase(groups, GroupId());
    make_unique(groups);
    return groups;
  }

  bool overwrites(const Operation& operation, BufferId buffer) const {
    if (program_.buffer(buffer).kind == BufferKind::kInput) return true;
    const auto* library = std::get_if<ExternKernel>(&operation.v);
    return library != nullptr && std::find(library->mutated.begin(), library->mutated.end(),
                                           buffer) != library->mutated.end();
  }

  void place(Candidate c) {
    if (options_.fuse && !c.scan) {
      std::vector<GroupId> near = c.producers;
      std::sort(near.begin(), near.end(), [&](GroupId a, GroupId b) {
        return std::pair(result_.groups[a].level, a) > std::pair(result_.groups[b].level, b);
      });
      if (near.size() > kMaxCandidates) near.resize(kMaxCandidates);
      std::string reason;
      for (GroupId group : near) {
        if (try_join(group, c, &reason)) return;
        note_not_fused(group, c, reason);
      }
      std::vector<GroupId> beside;
      for (const Access& access : c.accesses) {
        const auto found = latest_reader_.find(access.buffer);
        if (found != latest_reader_.end() &&
            std::find(near.begin(), near.end(), found->second) == near.end() &&
            std::find(beside.begin(), beside.end(), found->second) == beside.end()) {
          beside.push_back(found->second);
        }
      }
      if (beside.size() > kMaxCandidates) beside.resize(kMaxCandidates);
      for (GroupId group : beside) {
        if (try_join(group, c, &reason)) return;
      }
    }
    const auto kind = c.scan ? FusionGroup::Kind::kScan : FusionGroup::Kind::kLoops;
    const GroupId group = new_group(kind, c.loops.outer, c.loops.inner, c.producers);
    states_[group].is_product = c.product;
    add_member(group, c, own_variables(c));
  }

  void place_alone(OperationId id, FusionGroup::Kind kind, std::vector<Index> outer,
                   std::vector<Index> inner) {
    const Operation& operation = program_.operations()[id];
    std::vector<GroupId> before = producers_of(operation);
    // Random numbers are drawn, and errors raised, in the order of the program.
    const auto* library = std::get_if<ExternKernel>(&operation.v);
    const bool effects = library != nullptr && library->has_side_effects;
    if (effects && latest_effect_.valid()) before.push_back(latest_effect_);
    const GroupId group = new_group(kind, std::move(outer), std::move(inner), before);
    if (effects) latest_effect_ = group;
    result_.groups[group].members.push_back({id, {}, false});
    for (BufferId read : buffers_read(operation)) record_read(group, read);
    for (BufferId written : buffers_written(operation)) result_.group_of_buffer[written] = group;
  }

  GroupId new_group(FusionGroup::Kind kind, std::vector<Index> outer, std::vector<Index> inner,
                    const std::vector<GroupId>& producers) {
    FusionGroup group;
    group.kind = kind;
    group.outer = std::move(outer);
    group.inner = std::move(inner);
    for (GroupId producer : producers)
      group.level = std::max(group.level, result_.groups[producer].level + 1);
    const GroupId id = result_.groups.push_back(std::move(group));
    states_.push_back({});
    add_predecessors(id, producers);
    return id;
  }

  void add_predecessors(GroupId group, const std::vector<GroupId>& producers) {
    std::vector<GroupId>& all = result_.groups[group].predecessors;
    for (GroupId producer : producers) {
      if (producer == group) continue;
      states_[producer].has_consumers = true;
      all.push_back(producer);
    }
    make_unique(all);
  }

  void record_read(GroupId group, BufferId buffer) {
    std::vector<GroupId>& readers = readers_[buffer];
    if (readers.empty() || readers.back() != group) readers.push_back(group);
    latest_reader_[buffer] = group;
  }

  void note_not_fused(GroupId group, const Candidate& c, const std::string& reason) {
    if (result_.groups[group].kind == FusionGroup::Kind::kExtern || reason.empty()) return;
    refusals_.push_back({result_.groups[group].members.back().operation, c.id, reason});
  }

  GroupId group_of(const Operation& operation) const {
    return result_.group_of_buffer[buffers_written(operation).front()];
  }

  // ---- joining ----

  bool try_join(GroupId group, const Candidate& c, std::string* reason) {
    reason->clear();
    const FusionGroup& g = result_.groups[group];
    if (!has_loops(g) || c.scan) return false;
    if (g.kind == FusionGroup::Kind::kScan && !is_behind(group, c)) {
      *reason = "beside a running value there is only what is computed of each";
      return false;
    }
    if (c.product || (states_[group].is_product && !is_behind_product(group, c))) return false;
    if (reads(c, states_[group].logsumexp)) return false;
    if (g.members.size() >= kMaxMembers ||
        states_[group].nodes + c.nodes > options_.max_kernel_nodes) {
      *reason = "the kernel is large enough already";
      return false;
    }
    if (!order_allows(group, c)) {
      *reason = "another value that it needs is computed later";
      return false;
    }
    if (options_.one_direction && c.reduction && g.inner.empty() &&
        walks_both_ways(states_[group], g.outer, {})) {
      *reason = "rows are read faster when what lies across them has been turned";
      return false;
    }
    std::optional<LoopMapping> mapping = find_mapping(group, c, reason);
    if (!mapping) return false;
    if (options_.one_direction && !g.inner.empty() && !states_[group].is_product &&
        walks_both_ways(with_accesses(group, c, *mapping), g.outer, g.inner)) {
      *reason = "one of them lies along the rows in memory, the other across them";
      return false;
    }
    if (!reads_where_written(group, c, *mapping)) {
      *reason = "it reads a value at another position than it is computed at";
      return false;
    }
    if (!g.inner.empty() && stage_of(group, c) >= kMaxStages) {
      *reason = "the rows are walked often enough already";
      return false;
    }
    if (crosses_stage_over_long_rows(group, c)) {
      *reason = "the rows are too long to be walked twice";
      return false;
    }
    raise_level(group, c);
    add_predecessors(group, c.producers);
    add_member(group, c, std::move(*mapping));
    return true;
  }

  static bool has_loops(const FusionGroup& g) {
    return g.kind == FusionGroup::Kind::kLoops || g.kind == FusionGroup::Kind::kScan;
  }

  static bool reads(const Candidate& c, BufferId buffer) {
    return buffer.valid() &&
           std::any_of(c.accesses.begin(), c.accesses.end(),
                       [&](const Access& access) { return access.buffer == buffer; });
  }

  // Reads elements of the product, or what others made of them, once for each element.
  bool is_behind_product(GroupId group, const Candidate& c) const {
    const std::vector<Index>& loops = result_.groups[group].outer;
    return c.loops.outer.size() >= 1 && count_of(c.loops.outer) == count_of(loops) &&
           is_behind(group, c);
  }

  // Computes each of its elements of what the group does.
  bool is_behind(GroupId group, const Candidate& c) const {
    return !c.reduction &&
           std::any_of(c.accesses.begin(), c.accesses.end(), [&](const Access& access) {
             return states_[group].written.contains(access.buffer);
           });
  }

  Index count_of(const std::vector<Index>& variables) const {
    Index all = context_.constant(1);
    for (Index v : variables) all = all * (v.is_symbol() ? v.extent() : context_.constant(1));
    return all;
  }

  bool order_allows(GroupId group, const Candidate& c) const {
    if (!states_[group].has_consumers) return true;
    return std::all_of(c.producers.begin(), c.producers.end(), [&](GroupId producer) {
      return producer == group || result_.groups[producer].level < result_.groups[group].level;
    });
  }

  void raise_level(GroupId group, const Candidate& c) {
    for (GroupId producer : c.producers) {
      if (producer == group) continue;
      result_.groups[group].level =
          std::max(result_.groups[group].level, result_.groups[producer].level + 1);
    }
  }

  // The candidate's variables over the group's, which may be rebased to the candidate's loops on
  // the way.
  std::optional<LoopMapping> find_mapping(GroupId group, const Candidate& c, std::string* reason) {
    const FusionGroup& g = result_.groups[group];
    const std::vector<Index> variables = c.loops.all();
    bool reads_group = false;
    for (const bool full : {true, false}) {
      for (const Access& access : c.accesses) {
        const auto written = states_[group].written.find(access.buffer);
        if (written == states_[group].written.end() || written->second.full != full) continue;
        reads_group = true;
        if (access.runtime) {
          *reason = "it reads the value at positions known only at run time";
          return std::nullopt;
        }
        const Buffer& buffer = program_.buffer(access.buffer);
        std::optional<LoopMatch> match = match_loops(context_, variables, buffer.sizes,
                                                     access.position, written->second.position);
        if (!match) continue;
        if (auto mapping = complete(group, c, access, written->second, std::move(*match)))
          return mapping;
      }
    }
    if (!reads_group && same_loops(g, c)) return identity_mapping(group, c);
    *reason = reads_group ? "its loops do not correspond to those of the value's kernel" : "";
    return std::nullopt;
  }

  std::optional<LoopMapping> complete(GroupId group, const Candidate& c, const Access& access,
                                      const Written& written, LoopMatch match) {
    const FusionGroup& g = result_.groups[group];
    if (g.inner.empty()) {
      if (!match.unmatched.empty()) return std::nullopt;
      if (!c.reduction && !has_division(match.mapping)) return std::move(match.mapping);
      // The candidate's loops are finer, or separate outer from inner loops: the group takes them
      // over.
      std::vector<Index> all = g.outer;
      const std::optional<LoopMatch> back = match_loops(
          context_, all, program_.buffer(access.buffer).sizes, written.position, access.position);
      if (!back || !back->unmatched.empty()) {
        if (c.reduction) return std::nullopt;
        return std::move(match.mapping);
      }
      if (!c.reduction && has_division(back->mapping)) return std::move(match.mapping);
      rebase(group, c.loops, back->mapping);
      return own_variables(c);
    }
    // Variables that a row's value does not mention walk along the row.
    if (!match.unmatched.empty()) {
      if (written.full) return std::nullopt;
      std::vector<Index> extents;
      for (Index v : match.unmatched) extents.push_back(v.extent());
      std::vector<Index> inner_extents;
      for (Index v : g.inner)
        inner_extents.push_back(v.is_symbol() ? v.extent() : context_.constant(1));
      if (product(context_, extents) != product(context_, inner_extents)) return std::nullopt;
      const Index walked = dot(context_, g.inner, contiguous_strides(context_, inner_extents));
      const std::vector<Index> values = delinearize(walked, extents);
      for (size_t i = 0; i < values.size(); ++i)
        match.mapping.emplace_back(match.unmatched[i], values[i]);
    }
    if (c.reduction && !respects_roles(g, c, match.mapping)) return std::nullopt;
    if (!written.full && match.unmatched.empty() && c.reduction) return std::nullopt;
    return std::move(match.mapping);
  }

  static bool respects_roles(const FusionGroup& g, const Candidate& c, const LoopMapping& mapping) {
    for (const auto& [variable, value] : mapping) {
      const bool is_inner =
          std::find(c.loops.inner.begin(), c.loops.inner.end(), variable) != c.loops.inner.end();
      if (depends_on_any(value, is_inner ? g.outer : g.inner)) return false;
    }
    return true;
  }

  static LoopMapping own_variables(const Candidate& c) {
    LoopMapping identity;
    for (Index variable : c.loops.all()) {
      if (variable.is_symbol()) identity.emplace_back(variable, variable);
    }
    return identity;
  }

  // Horizontal fusion: the same loops in the same order.
  bool same_loops(const FusionGroup& g, const Candidate& c) const {
    if (!c.reduction) {
      std::vector<Index> all = g.outer;
      all.insert(all.end(), g.inner.begin(), g.inner.end());
      return c.loops.outer == all;
    }
    if (g.inner.empty()) return c.loops.all() == g.outer;
    return c.loops.outer == g.outer && c.loops.inner == g.inner;
  }

  LoopMapping identity_mapping(GroupId group, const Candidate& c) {
    FusionGroup& g = result_.groups[group];
    if (c.reduction && g.inner.empty()) rebase(group, c.loops, own_variables(c));
    return own_variables(c);
  }

  // Rewrites a group without inner loops to other loops. `mapping` gives its variables over the new
  // ones.
  void rebase(GroupId group, const Loops& loops, const LoopMapping& mapping) {
    FusionGroup& g = result_.groups[group];
    Substitution substitution = as_substitution(mapping);
    for (GroupMember& member : g.members) {
      for (auto& [variable, value] : member.mapping) value = substitution.apply(value);
      member.inner = !loops.inner.empty();
    }
    for (auto& [buffer, written] : states_[group].written)
      written.position = rewrite_all(substitution, written.position);
    for (auto& [buffer, position] : states_[group].reads)
      position = rewrite_all(substitution, position);
    g.outer = loops.outer;
    g.inner = loops.inner;
  }

  // Every value of the group that the candidate reads is read where it is computed, and what it
  // overwrites nobody reads elsewhere.
  bool reads_where_written(GroupId group, const Candidate& c, const LoopMapping& mapping) {
    const GroupState& state = states_[group];
    Substitution substitution = as_substitution(mapping);
    for (const Access& access : c.accesses) {
      const auto written = state.written.find(access.buffer);
      if (written == state.written.end()) continue;
      if (access.runtime || rewrite_all(substitution, access.position) != written->second.position)
        return false;
    }
    if (program_.buffer(c.output).kind != BufferKind::kInput) return true;
    if (state.scattered_reads.contains(c.output)) return false;
    const std::vector<Index> own = rewrite_all(substitution, c.loops.outer);
    const auto read = state.reads.find(c.output);
    if (read != state.reads.end() && read->second != own) return false;
    for (const Access& access : c.accesses) {
      if (access.buffer == c.output &&
          (access.runtime || rewrite_all(substitution, access.position) != own))
        return false;
    }
    // What is stored once for a row is stored after its last stage; a store inside the row would
    // overwrite what a later stage reads.
    const std::vector<Index>& inner = result_.groups[group].inner;
    return read == state.reads.end() ||
           std::none_of(own.begin(), own.end(), [&](Index p) { return depends_on_any(p, inner); });
  }

  // The pass over a row in which the candidate can be computed.
  uint32_t stage_of(GroupId group, const Candidate& c) const {
    uint32_t stage = 0;
    for (const Access& access : c.accesses) {
      const auto written = states_[group].written.find(access.buffer);
      if (written != states_[group].written.end()) stage = std::max(stage, written->second.stage);
    }
    return stage;
  }

  // A member that needs a row's result and walks the row again, which is too long for the cache or
  // for those who would walk it.
  bool crosses_stage_over_long_rows(GroupId group, const Candidate& c) const {
    const FusionGroup& g = result_.groups[group];
    if (g.inner.empty()) return false;
    const bool needs_result =
        std::any_of(c.accesses.begin(), c.accesses.end(), [&](const Access& access) {
          const auto written = states_[group].written.find(access.buffer);
          return written != states_[group].written.end() && !written->second.full;
        });
    if (!needs_result || (options_.online_sums && is_online_sum(group, c)) ||
        (options_.sums_of_deviations && is_sum_of_deviations(group, c)))
      return false;
    if (count_of(c.loops.all()) == count_of(g.outer)) return false;
    const Index row = count_of(g.inner);
    if (row.range().lo > kMaxRowElements) return true;
    const int64_t rows = count_of(g.outer).range().hi;
    if (options_.band_width > 0 && lies_across_memory(group)) {
      const bool is_much = (row * count_of(g.outer)).range().lo >= kMuchWork;
      return is_much && rows / options_.band_width <= options_.few_bands &&
             row.range().lo >= options_.long_band / options_.band_width;
    }
    return row.range().lo >= options_.long_row && rows <= options_.few_rows;
  }

  // More of what the group reads has neighbours along its last outer loop than along its last inner
  // one.
  bool lies_across_memory(GroupId group) const {
    const FusionGroup& g = result_.groups[group];
    if (g.outer.empty() || !g.outer.back().is_symbol() || !g.inner.back().is_symbol()) return false;
    const auto walks = [](Index offset, Index loop) {
      const std::optional<LinearIn> linear = linear_in(offset, loop);
      return linear && linear->stride.is_constant(1);
    };
    int across = 0;
    for (const auto& [buffer, position] : states_[group].reads) {
      const Index offset = dot(context_, position, program_.buffer(buffer).strides);
      if (!depends_on_any(offset, g.inner)) continue;
      if (walks(offset, g.outer.back())) ++across;
      if (walks(offset, g.inner.back())) --across;
    }
    return across > 0;
  }

  // What the group reads and stores, and what the candidate does in addition.
  GroupState with_accesses(GroupId group, const Candidate& c, const LoopMapping& mapping) const {
    GroupState state;
    state.reads = states_[group].reads;
    state.written = states_[group].written;
    Substitution substitution = as_substitution(mapping);
    for (const Access& access : c.accesses) {
      if (!access.runtime && !state.written.contains(access.buffer))
        state.reads[access.buffer] = rewrite_all(substitution, access.position);
    }
    if (!c.reduction) state.written[c.output].position = rewrite_all(substitution, c.position);
    return state;
  }

  // Whether some memory has its neighbours along the last of the loops, some along another one.
  bool walks_both_ways(const GroupState& state, const std::vector<Index>& outer,
                       const std::vector<Index>& inner) const {
    std::vector<Index> loops = outer;
    loops.insert(loops.end(), inner.begin(), inner.end());
    std::erase_if(loops, [](Index v) { return !v.is_symbol(); });
    if (loops.size() < 2 || count_of(loops).range().hi < kTurnedElements) return false;
    const Index along = loops.back();
    const auto is_long = [](Index loop) { return loop.extent().range().hi >= kTurnedExtent; };
    if (!is_long(along)) return false;
    bool has_along = false;
    bool has_across = false;
    const auto look_at = [&](BufferId buffer, const std::vector<Index>& position) {
      const Index offset = dot(context_, position, program_.buffer(buffer).strides);
      const std::optional<LinearIn> in_row = linear_in(offset, along);
      if (!in_row || in_row->stride.is_constant(0)) return;
      for (size_t i = 0; i + 1 < loops.size(); ++i) {
        if (!is_long(loops[i])) continue;
        const std::optional<LinearIn> in_rows = linear_in(offset, loops[i]);
        if (!in_rows || in_rows->stride.is_constant(0)) continue;
        has_along = has_along || in_row->stride.is_constant(1);
        has_across = has_across || in_rows->stride.is_constant(1);
      }
    };
    for (const auto& [buffer, position] : state.reads) look_at(buffer, position);
    for (const auto& [buffer, written] : state.written) look_at(buffer, written.position);
    return has_along && has_across;
  }

  // The sum of exp(x - m) over the loops in which the group finds the maximum m of x.
  bool is_online_sum(GroupId group, const Candidate& c) const {
    const auto* sum = std::get_if<Reduction>(&program_.operations()[c.id].v);
    if (sum == nullptr || sum->kind != ReductionKind::kSum) return false;
    const std::optional<ShiftedExponential> exponential = shifted_exponential(sum->value);
    if (!exponential || exponential->shift.op() != ExprOp::kLoad) return false;
    for (const GroupMember& member : result_.groups[group].members) {
      const auto* greatest = std::get_if<Reduction>(&program_.operations()[member.operation].v);
      if (greatest != nullptr && greatest->kind == ReductionKind::kMax &&
          greatest->output == exponential->shift.buffer())
        return greatest->value == exponential->x;
    }
    return false;
  }

  // The sum of (x - m)^2 over the loops in which the group sums up x, m the mean.
  bool is_sum_of_deviations(GroupId group, const Candidate& c) const {
    const auto* squares = std::get_if<Reduction>(&program_.operations()[c.id].v);
    if (squares == nullptr || squares->kind != ReductionKind::kSum) return false;
    const std::optional<SquaredDeviation> square = squared_deviation(squares->value);
    if (!square || square->sum.op() != ExprOp::kLoad ||
        !count_of(result_.groups[group].inner).is_constant(square->count))
      return false;
    for (const GroupMember& member : result_.groups[group].members) {
      const auto* sum = std::get_if<Reduction>(&program_.operations()[member.operation].v);
      if (sum != nullptr && sum->kind == ReductionKind::kSum && sum->output == square->sum.buffer())
        return sum->value == square->x;
    }
    return false;
  }

  void add_member(GroupId group, const Candidate& c, LoopMapping mapping) {
    FusionGroup& g = result_.groups[group];
    GroupState& state = states_[group];
    Substitution substitution = as_substitution(mapping);
    for (const Access& access : c.accesses) {
      if (state.written.contains(access.buffer)) continue;
      record_read(group, access.buffer);
      std::vector<Index> position = rewrite_all(substitution, access.position);
      const auto [found, added] = state.reads.emplace(access.buffer, position);
      if (access.runtime || (!added && found->second != position))
        state.scattered_reads.insert(access.buffer);
    }
    std::vector<Index> position = rewrite_all(substitution, c.position);
    const bool inner = c.reduction || std::any_of(position.begin(), position.end(), [&](Index p) {
                         return depends_on_any(p, g.inner);
                       });
    const bool full = g.inner.empty() || (inner && !c.reduction);
    const uint32_t stage = stage_of(group, c) + (c.reduction ? 1 : 0);
    state.written[c.output] = {std::move(position), stage, full};
    state.nodes += c.nodes;
    producers_.insert_or_assign(c.id, c.producers);
    g.members.push_back({c.id, std::move(mapping), inner});
    result_.group_of_buffer[c.output] = group;
    if (c.logsumexp.valid()) {
      state.logsumexp = c.logsumexp;
      result_.group_of_buffer[c.logsumexp] = group;
    }
  }

  // ---- merging groups ----

  // An operation that needs the values of two groups joins one of them, and depends on the other
  // from then on. Here groups move into groups that they depend on, member by member.
  void merge_groups() {
    merged_into_.resize(result_.groups.size());
    for (uint32_t i = 0; i < result_.groups.size(); ++i) {
      FusionGroup& g = result_.groups[GroupId(i)];
      for (GroupId& before : g.predecessors) before = now(before);
      make_unique(g.predecessors);
      if (g.kind != FusionGroup::Kind::kLoops || overwrites_inputs(g)) continue;
      // All the others have to lie on lower levels than the one that it joins.
      const auto last =
          std::max_element(g.predecessors.begin(), g.predecessors.end(), [&](GroupId a, GroupId b) {
            return std::pair(result_.groups[a].level, a) < std::pair(result_.groups[b].level, b);
          });
      if (last == g.predecessors.end()) continue;
      const GroupId into = *last;
      if (merge(GroupId(i), into)) merged_into_[GroupId(i)] = into;
    }
  }

  bool overwrites_inputs(const FusionGroup& g) const {
    return std::any_of(g.members.begin(), g.members.end(), [&](const GroupMember& member) {
      const BufferId output = buffers_written(program_.operations()[member.operation]).front();
      return program_.buffer(output).kind == BufferKind::kInput;
    });
  }

  GroupId now(GroupId group) const {
    while (group.valid() && merged_into_[group].valid()) group = merged_into_[group];
    return group;
  }

  bool merge(GroupId group, GroupId into) {
    if (!has_loops(result_.groups[into])) return false;
    const FusionGroup old_group = result_.groups[into];
    const GroupState old_state = states_[into];
    const std::vector<GroupMember> members = result_.groups[group].members;
    size_t joined = 0;
    for (const GroupMember& member : members) {
      Candidate c = candidate(member.operation);
      c.producers = producers_.at(member.operation);
      // Of the group itself those that have joined already.
      for (GroupId& producer : c.producers) producer = producer == group ? into : now(producer);
      make_unique(c.producers);
      std::string reason;
      if (!try_join(into, c, &reason)) break;
      ++joined;
    }
    if (joined == members.size()) {
      result_.groups[group].members.clear();
      return true;
    }
    result_.groups[into] = old_group;
    states_[into] = old_state;
    for (size_t i = 0; i < joined; ++i) {
      const Operation& operation = program_.operations()[members[i].operation];
      result_.group_of_buffer[buffers_written(operation).front()] = group;
    }
    return false;
  }

  void drop_merged_groups() {
    IdVector<GroupId, FusionGroup> left;
    IdVector<GroupId, GroupId> renamed;
    renamed.resize(result_.groups.size());
    for (uint32_t i = 0; i < result_.groups.size(); ++i) {
      FusionGroup& g = result_.groups[GroupId(i)];
      if (!g.members.empty()) renamed[GroupId(i)] = left.push_back(std::move(g));
    }
    if (left.size() == renamed.size()) {
      result_.groups = std::move(left);
      return;
    }
    const auto new_id = [&](GroupId group) { return group.valid() ? renamed[now(group)] : group; };
    for (FusionGroup& g : left) {
      for (GroupId& before : g.predecessors) before = new_id(before);
      make_unique(g.predecessors);
    }
    for (GroupId& group : result_.group_of_buffer) group = new_id(group);
    result_.groups = std::move(left);
  }

  struct Refusal {
    OperationId producer;
    OperationId consumer;
    std::string reason;
  };

  const Program& program_;
  const ScheduleOptions& options_;
  IndexContext& context_;
  FusionResult result_;
  std::vector<Refusal> refusals_;
  std::unordered_map<OperationId, std::vector<GroupId>> producers_;
  IdVector<GroupId, GroupId> merged_into_;  // invalid: not merged
  IdVector<GroupId, GroupState> states_;
  std::unordered_map<BufferId, std::vector<GroupId>> readers_;
  std::unordered_map<BufferId, GroupId> latest_reader_;
  GroupId latest_effect_;  // the last library call with side effects
};

}  // namespace

FusionResult fuse_loops(const Program& program, const std::vector<OperationId>& operations,
                        const ScheduleOptions& options) {
  return Fuser(program, options).run(operations);
}

}  // namespace litz
