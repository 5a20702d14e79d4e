#include "engine/referee/model.hpp"

#include <algorithm>
#include <optional>

#include "engine/base/check.hpp"
#include "engine/engine.hpp"

namespace kilokv::engine {

namespace {

bool is_absent(const ModelValue& value) { return std::holds_alternative<std::monostate>(value); }
bool is_bytes(const ModelValue& value) { return std::holds_alternative<std::string>(value); }
// The integer of a value; absent counts as 0. Requires: the value is not bytes.
std::int64_t integer_of(const ModelValue& value) { return is_absent(value) ? 0 : std::get<std::int64_t>(value); }

bool in_range(std::string_view key, std::string_view to) { return to.empty() || key < to; }

bool compare(GuardKind kind, std::int64_t left, std::int64_t right) {
  switch (kind) {
    case GuardKind::equal: return left == right;
    case GuardKind::not_equal: return left != right;
    case GuardKind::less: return left < right;
    case GuardKind::less_equal: return left <= right;
    case GuardKind::greater: return left > right;
    case GuardKind::greater_equal: return left >= right;
    case GuardKind::exists:
    case GuardKind::absent:
    case GuardKind::version_equal:
    case GuardKind::unchanged:
    case GuardKind::bytes_equal:
    case GuardKind::range_unchanged:
    case GuardKind::time_before:
    case GuardKind::time_after: break;
  }
  KILOKV_CHECK(false && "the kind of the guard is an integer compare");
  return false;
}

// One run: the state, with the transaction's own writes over it.
class Runner {
 public:
  Runner(const ModelState& state, const TransactionColumns& columns, Version commit_version, TimeUs batch_time_us)
      : state_(state), columns_(columns), commit_version_(commit_version), batch_time_us_(batch_time_us) {}

  ModelRun run(std::size_t t, bool last_try) {
    const bool then_runs = guards(t);
    if (run_.outcome == Outcome::postponed && last_try) {
      run_.outcome = Outcome::wait_expired;
      if (columns_.expire_runs_else[t] == 0) return run_;
    }
    if (run_.outcome == Outcome::type_mismatch || run_.outcome == Outcome::postponed) return run_;
    const std::uint32_t begin = then_runs ? columns_.then_begin(t) : columns_.then_end[t];
    const std::uint32_t end = then_runs ? columns_.then_end[t] : columns_.else_end[t];
    run_.first_op = begin;
    for (std::uint32_t i = begin; i < end; ++i) {
      const std::optional<Outcome> problem = operation(i);
      if (!problem) continue;
      ModelRun undone;
      undone.outcome = *problem;
      undone.failed_in = then_runs ? FailedIn::then_ops : FailedIn::else_ops;
      undone.failed_index = i - begin;
      return undone;
    }
    return run_;
  }

 private:
  ModelCell see(std::string_view key) const {
    if (const auto own = own_.find(key); own != own_.end()) return {own->second, commit_version_, true};
    const auto found = state_.records.find(key);
    if (found == state_.records.end()) return {};
    return {found->second.value, found->second.version, false};
  }

  // The last `limit` live keys, from the last to the first.
  std::vector<std::pair<std::string, ModelCell>> see_range_reverse(std::uint32_t range) const {
    std::vector<std::pair<std::string, ModelCell>> pairs = see_range(range, SIZE_MAX);
    std::reverse(pairs.begin(), pairs.end());
    if (pairs.size() > columns_.range_limit[range]) pairs.resize(columns_.range_limit[range]);
    return pairs;
  }

  std::vector<std::pair<std::string, ModelCell>> see_range(std::uint32_t range) const {
    return see_range(range, columns_.range_limit[range]);
  }

  // The first `limit` live keys of [from, to) in key order, with the transaction's own writes.
  std::vector<std::pair<std::string, ModelCell>> see_range(std::uint32_t range, std::size_t limit) const {
    const std::string_view from = columns_.range_from(range), to = columns_.range_to(range);
    auto before = state_.records.lower_bound(from);
    auto own = own_.lower_bound(from);
    std::vector<std::pair<std::string, ModelCell>> pairs;
    while (pairs.size() < limit) {
      const bool is_before = before != state_.records.end() && in_range(before->first, to);
      const bool is_own = own != own_.end() && in_range(own->first, to);
      if (!is_before && !is_own) break;
      const std::string& key = !is_own || (is_before && before->first < own->first) ? before->first : own->first;
      ModelCell cell = see(key);
      if (!is_absent(cell.value)) pairs.emplace_back(key, std::move(cell));
      if (is_own && own->first == key) ++own;
      if (is_before && before->first == key) ++before;
    }
    return pairs;
  }

  // Returns whether the then-list runs. Sets the outcome, and the guard that decided, if one did.
  bool guards(std::size_t t) {
    for (std::uint32_t i = columns_.guard_begin(t); i < columns_.guard_end[t]; ++i) {
      ModelCell seen;
      const std::optional<bool> holds = guard(i, &seen);
      if (holds && *holds) continue;
      run_.failed_in = FailedIn::guards;
      run_.failed_index = i - columns_.guard_begin(t);
      if (!holds) {
        run_.outcome = Outcome::type_mismatch;
      } else {
        run_.guard = seen;
        const bool waits = static_cast<OnFalse>(columns_.guard_on_false[i]) == OnFalse::wait;
        run_.outcome = waits ? Outcome::postponed : Outcome::guard_failed;
      }
      return false;
    }
    return true;
  }

  // Whether guard i is true; nothing if it met the wrong type. Sets `seen` to the cell of its key, if it has one.
  std::optional<bool> guard(std::uint32_t i, ModelCell* seen) const {
    const auto kind = static_cast<GuardKind>(columns_.guard_kind[i]);
    const auto version = static_cast<Version>(columns_.guard_operand[i]);
    if (kind == GuardKind::range_unchanged) return range_unchanged(columns_.guard_key[i], version);
    if (kind == GuardKind::time_before || kind == GuardKind::time_after) {
      const std::optional<TimeUs> time = time_of(i, seen);
      if (!time) return std::nullopt;
      return kind == GuardKind::time_before ? batch_time_us_ < *time : batch_time_us_ >= *time;
    }
    const std::string_view key = columns_.key(columns_.guard_key[i]);
    const ModelCell cell = *seen = see(key);
    switch (kind) {
      case GuardKind::exists: return !is_absent(cell.value);
      case GuardKind::absent: return is_absent(cell.value);
      case GuardKind::equal:
      case GuardKind::not_equal:
      case GuardKind::less:
      case GuardKind::less_equal:
      case GuardKind::greater:
      case GuardKind::greater_equal: return compared(i, cell.value);
      case GuardKind::version_equal: return cell.version == version;
      case GuardKind::unchanged:
        if (!state_.records.contains(key) && version < state_.tombstone_floor) return false;
        return cell.version <= version;
      case GuardKind::bytes_equal:
        if (std::holds_alternative<std::int64_t>(cell.value)) return std::nullopt;
        return is_bytes(cell.value) &&
               std::get<std::string>(cell.value) == columns_.value(static_cast<std::size_t>(columns_.guard_operand[i]));
      case GuardKind::range_unchanged:
      case GuardKind::time_before:
      case GuardKind::time_after: break;  // see above
    }
    KILOKV_CHECK(false && "the model knows the kind of the guard");
    return std::nullopt;
  }

  // The time that guard i compares with; nothing if its key holds bytes.
  std::optional<TimeUs> time_of(std::uint32_t i, ModelCell* seen) const {
    if (columns_.guard_key[i] == kNone) return columns_.guard_operand[i];
    *seen = see(columns_.key(columns_.guard_key[i]));
    if (is_bytes(seen->value)) return std::nullopt;
    return integer_of(seen->value);
  }

  // Whether `value` compares with the constant or the other key of guard i as its kind says.
  std::optional<bool> compared(std::uint32_t i, const ModelValue& value) const {
    const bool with_other = columns_.guard_other[i] != kNone;
    const ModelValue other =
        with_other ? see(columns_.key(columns_.guard_other[i])).value : ModelValue(columns_.guard_operand[i]);
    if (is_bytes(value) || is_bytes(other)) return std::nullopt;
    return compare(static_cast<GuardKind>(columns_.guard_kind[i]), integer_of(value), integer_of(other));
  }

  bool range_unchanged(std::uint32_t range, Version version) const {
    if (version < state_.tombstone_floor) return false;
    const std::string_view from = columns_.range_from(range), to = columns_.range_to(range);
    for (auto it = state_.records.lower_bound(from); it != state_.records.end() && in_range(it->first, to); ++it) {
      if (it->second.version > version) return false;
    }
    return true;
  }

  // Runs operation i. Returns the outcome that undoes the transaction, if the operation had a problem.
  std::optional<Outcome> operation(std::uint32_t i) {
    ModelEffect& effect = run_.effects.emplace_back();
    switch (static_cast<OpKind>(columns_.op_kind[i])) {
      case OpKind::get: effect.cell = see(columns_.key(columns_.op_key[i])); return std::nullopt;
      case OpKind::put: return put(i, &effect);
      case OpKind::del: return write(i, ModelValue(), 0, &effect);
      case OpKind::add: return add(i, &effect);
      case OpKind::range_get: effect.pairs = see_range(columns_.op_key[i]); return std::nullopt;
      case OpKind::range_get_reverse: effect.pairs = see_range_reverse(columns_.op_key[i]); return std::nullopt;
      case OpKind::delete_range: return delete_range(i, &effect);
    }
    KILOKV_CHECK(false && "the model knows the kind of the operation");
    return std::nullopt;
  }

  std::optional<Outcome> put(std::uint32_t i, ModelEffect* effect) {
    ModelValue value;
    if (const std::optional<Outcome> problem = operand(i, &value)) return problem;
    return write(i, value, expiry(i).value_or(0), effect);
  }

  std::optional<Outcome> add(std::uint32_t i, ModelEffect* effect) {
    ModelValue delta;
    if (const std::optional<Outcome> problem = operand(i, &delta)) return problem;
    const ModelValue before = see(columns_.key(columns_.op_key[i])).value;
    if (is_bytes(delta) || is_bytes(before)) return Outcome::type_mismatch;
    std::int64_t sum = 0;
    if (__builtin_add_overflow(integer_of(before), integer_of(delta), &sum)) return Outcome::overflow;
    return write(i, ModelValue(sum), expiry(i), effect);
  }

  std::optional<Outcome> delete_range(std::uint32_t i, ModelEffect* effect) {
    effect->pairs = see_range(columns_.op_key[i]);
    for (const auto& [key, cell] : effect->pairs) note_write({key, {}, 0});
    effect->wrote = !effect->pairs.empty();
    return std::nullopt;
  }

  // The expiry that operation i names, as a time.
  std::optional<TimeUs> expiry(std::uint32_t i) const {
    const auto found = std::lower_bound(columns_.expiry_op.begin(), columns_.expiry_op.end(), i);
    if (found == columns_.expiry_op.end() || *found != i) return std::nullopt;
    const auto x = static_cast<std::size_t>(found - columns_.expiry_op.begin());
    TimeUs time = columns_.expiry_us[x];
    const bool is_ttl = static_cast<Expiry>(columns_.expiry_kind[x]) == Expiry::after;
    if (is_ttl && __builtin_add_overflow(batch_time_us_, columns_.expiry_us[x], &time)) return kNever;
    return time;
  }

  // Gives `value` and the expiry to the key of operation i. Deletes the key if `value` is absent.
  std::optional<Outcome> write(std::uint32_t i, const ModelValue& value, std::optional<TimeUs> expires_us,
                               ModelEffect* effect) {
    const std::string key(columns_.key(columns_.op_key[i]));
    effect->cell = see(key);
    if (is_absent(value) && is_absent(effect->cell.value)) return std::nullopt;  // a delete of an absent key
    note_write({key, value, is_absent(value) ? 0 : expires_us});
    effect->cell = see(key);
    effect->wrote = true;
    return std::nullopt;
  }

  std::optional<Outcome> operand(std::uint32_t i, ModelValue* value) const {
    const std::int64_t constant = columns_.op_value[i];
    switch (static_cast<Operand>(columns_.op_operand[i])) {
      case Operand::integer: *value = constant; break;
      case Operand::bytes: *value = std::string(columns_.value(static_cast<std::size_t>(constant))); break;
      case Operand::get: *value = run_.effects[static_cast<std::size_t>(constant)].cell.value; break;
      case Operand::get_negated: {
        const ModelValue& read = run_.effects[static_cast<std::size_t>(constant)].cell.value;
        if (is_bytes(read)) return Outcome::type_mismatch;
        std::int64_t negated = 0;
        if (__builtin_sub_overflow(std::int64_t{0}, integer_of(read), &negated)) return Outcome::overflow;
        *value = is_absent(read) ? ModelValue() : ModelValue(negated);
        break;
      }
      case Operand::commit_version: *value = static_cast<std::int64_t>(commit_version_); break;
      case Operand::batch_time: *value = batch_time_us_; break;
    }
    return std::nullopt;
  }

  void note_write(ModelWrite write) {
    own_[write.key] = write.value;
    run_.writes.push_back(std::move(write));
  }

  const ModelState& state_;
  const TransactionColumns& columns_;
  const Version commit_version_;
  const TimeUs batch_time_us_;
  std::map<std::string, ModelValue, std::less<>> own_;
  ModelRun run_;
};

ModelRecord copy_of(const RecordView& record) {
  ModelRecord copy{{}, version_of(record.cell.tag), record.expires_us};
  switch (type_of(record.cell.tag)) {
    case ValueType::absent: break;
    case ValueType::integer: copy.value = static_cast<std::int64_t>(record.cell.word); break;
    case ValueType::bytes: copy.value = std::string(record.bytes); break;
  }
  return copy;
}

}  // namespace

void ModelState::drop_tombstones(Version floor) {
  std::erase_if(records,
                [&](const auto& entry) { return is_absent(entry.second.value) && entry.second.version <= floor; });
  tombstone_floor = std::max(tombstone_floor, floor);
}

ModelState model_of(const Engine& engine) {
  ModelState state;
  state.tombstone_floor = engine.tombstone_floor();
  engine.scan({}, {}, [&](const RecordView& record) {
    state.records.emplace_hint(state.records.end(), record.key, copy_of(record));
    return true;
  });
  return state;
}

ModelState model_of_keys(const Engine& engine, const TransactionColumns& columns) {
  ModelState state;
  state.tombstone_floor = engine.tombstone_floor();
  for (std::size_t i = 0; i < columns.key_end.size(); ++i) {
    const std::string_view key = columns.key(i);
    const RecordView record = engine.find(key);
    if (version_of(record.cell.tag) != 0) state.records.try_emplace(std::string(key), copy_of(record));
  }
  return state;
}

ModelRun run_on_model(const ModelState& state, const TransactionColumns& columns, std::size_t t, Version commit_version,
                      TimeUs batch_time_us, bool last_try) {
  return Runner(state, columns, commit_version, batch_time_us).run(t, last_try);
}

const ModelRecord& apply_to_model(ModelState* state, const ModelWrite& write, Version commit_version) {
  ModelRecord& record = state->records[write.key];
  record = {write.value, commit_version, write.expires_us.value_or(record.expires_us)};
  return record;
}

}  // namespace kilokv::engine
