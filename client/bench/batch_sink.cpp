// Role: see batch_sink.hpp.
#include "client/bench/batch_sink.hpp"

namespace kilokv::bench {

void BatchSink::guard(engine::GuardKind kind, engine::OnFalse on_false, std::uint32_t key, std::int64_t operand,
                      std::uint32_t other) {
  const auto subject = static_cast<client::Key>(key);
  const auto when_false = static_cast<client::OnFalse>(on_false);
  const auto version = static_cast<std::uint64_t>(operand);
  switch (kind) {
    case engine::GuardKind::exists: return batch_->guard_exists(subject, when_false);
    case engine::GuardKind::absent: return batch_->guard_absent(subject, when_false);
    case engine::GuardKind::version_equal: return batch_->guard_version(subject, version, when_false);
    case engine::GuardKind::unchanged: return batch_->guard_unchanged(subject, version, when_false);
    case engine::GuardKind::bytes_equal: return batch_->guard_bytes(subject, values_[version], when_false);
    case engine::GuardKind::range_unchanged: return;  // comes through range_guard
    case engine::GuardKind::time_before:
      return key == engine::kNone ? batch_->guard_time_before(operand) : batch_->guard_time_before(subject);
    case engine::GuardKind::time_after:
      return key == engine::kNone ? batch_->guard_time_after(operand, when_false)
                                  : batch_->guard_time_after(subject, when_false);
    case engine::GuardKind::equal:
    case engine::GuardKind::not_equal:
    case engine::GuardKind::less:
    case engine::GuardKind::less_equal:
    case engine::GuardKind::greater:
    case engine::GuardKind::greater_equal: break;
  }
  const auto compare = static_cast<client::Compare>(kind);
  if (other != engine::kNone) {
    batch_->guard_keys(subject, compare, static_cast<client::Key>(other), when_false);
  } else {
    batch_->guard(subject, compare, operand, when_false);
  }
}

void BatchSink::range_guard(engine::GuardKind kind, engine::OnFalse on_false, std::string_view from,
                            std::string_view to, Version version) {
  switch (kind) {
    case engine::GuardKind::range_unchanged:
      return batch_->guard_range_unchanged(from, to, version, static_cast<client::OnFalse>(on_false));
    case engine::GuardKind::exists:
    case engine::GuardKind::absent:
    case engine::GuardKind::equal:
    case engine::GuardKind::not_equal:
    case engine::GuardKind::less:
    case engine::GuardKind::less_equal:
    case engine::GuardKind::greater:
    case engine::GuardKind::greater_equal:
    case engine::GuardKind::version_equal:
    case engine::GuardKind::unchanged:
    case engine::GuardKind::bytes_equal:
    case engine::GuardKind::time_before:
    case engine::GuardKind::time_after: return;  // these come through guard
  }
}

void BatchSink::op(engine::OpKind kind, std::uint32_t key, engine::Operand operand, std::int64_t value) {
  const auto subject = static_cast<client::Key>(key);
  switch (kind) {
    case engine::OpKind::get: batch_->get(subject); return;
    case engine::OpKind::put: batch_->put(subject, operand_of(operand, value)); return;
    case engine::OpKind::del: batch_->del(subject); return;
    case engine::OpKind::add: batch_->add(subject, operand_of(operand, value)); return;
    case engine::OpKind::range_get:
    case engine::OpKind::delete_range:
    case engine::OpKind::range_get_reverse: return;  // these come through range_op
  }
}

void BatchSink::range_op(engine::OpKind kind, std::string_view from, std::string_view to, std::uint32_t limit) {
  switch (kind) {
    case engine::OpKind::range_get: batch_->range_get(from, to, limit); return;
    case engine::OpKind::delete_range: batch_->delete_range(from, to, limit); return;
    case engine::OpKind::range_get_reverse: batch_->range_get_reverse(from, to, limit); return;
    case engine::OpKind::get:
    case engine::OpKind::put:
    case engine::OpKind::del:
    case engine::OpKind::add: return;  // these come through op
  }
}

client::Operand BatchSink::operand_of(engine::Operand operand, std::int64_t value) const {
  const auto index = static_cast<std::size_t>(value);
  switch (operand) {
    case engine::Operand::integer: return value;
    case engine::Operand::bytes: return values_[index];
    case engine::Operand::get: return client::FromGet{static_cast<client::Op>(index)};
    case engine::Operand::get_negated: return client::FromGet{static_cast<client::Op>(index), true};
    case engine::Operand::commit_version: return client::CommitVersion{};
    case engine::Operand::batch_time: return client::BatchTime{};
  }
  return value;
}

}  // namespace kilokv::bench
