// A queue of jobs. A worker takes a job for a time, and finishes it within this time. Otherwise another worker takes
// it. The work may be done more than once. Its result counts once. docs/recipes.md explains it.
//
//   jobs/QUEUE/work/ID     what to do: an integer, which the job adds to the sum
//   jobs/QUEUE/lease/ID    from when on a worker may take the job, in microseconds; 0: at once
//   jobs/QUEUE/done/ID     the token under which the job was finished
//   jobs/QUEUE/submitted   how many jobs were submitted
//   jobs/QUEUE/sum         the result of all jobs
#include <algorithm>
#include <random>

#include "client/examples/example.hpp"

namespace {

using namespace example;

constexpr char kUsage[] =
    "jobs [--endpoint HOST:PORT] VERB ...\n"
    "  submit QUEUE ID NUMBER           adds a job; each job needs an ID of its own\n"
    "  take QUEUE LEASE_MS WAIT_MS      takes a job for LEASE_MS; waits up to WAIT_MS for one; prints ID, NUMBER and "
    "TOKEN\n"
    "  finish QUEUE ID NUMBER TOKEN     says that the job is done: NUMBER is added to the sum\n";
constexpr std::uint32_t kLooked = 100;  // leases that a worker looks at; more than there are workers

struct Queue {
  std::string prefix;

  std::string work(const std::string& id) const { return prefix + "work/" + id; }
  std::string leases() const { return prefix + "lease/"; }
  std::string lease(const std::string& id) const { return leases() + id; }
  std::string done(const std::string& id) const { return prefix + "done/" + id; }
  std::string submitted() const { return prefix + "submitted"; }
  std::string sum() const { return prefix + "sum"; }
};

Expected<std::string> submit(const Server& server, const Queue& queue, const std::string& id, std::int64_t number) {
  Batch batch;
  batch.begin();
  const Key work = batch.key(queue.work(id));
  batch.guard_absent(work);
  batch.guard_absent(batch.key(queue.done(id)));
  batch.put(work, number);
  batch.put(batch.key(queue.lease(id)), 0);
  batch.add(batch.key(queue.submitted()), 1);  // wakes workers that wait
  batch.end();
  const Expected<RequestResult> sent = server.session.execute(batch);
  if (!sent) return sent.error();
  return "submitted " + id;  // by this run, or by an earlier one
}

// What a worker sees of the queue at one moment.
struct View {
  std::int64_t submitted = 0, now_us = 0;
  std::vector<std::string> open;  // jobs that may be taken now
  std::string next;               // if there is none: the job whose lease ends first
};

Expected<View> look(const Server& server, const Queue& queue) {
  Batch batch;
  batch.begin();
  batch.get(batch.key(queue.submitted()));
  batch.range_get(queue.leases(), end_of(queue.leases()), kLooked);
  batch.end();
  const Expected<RequestResult> sent = server.session.execute(batch);
  if (!sent) return sent.error();
  View view;
  view.now_us = sent->results.at(0).batch_time_us;
  view.submitted = integer_in(sent->results.read(0, 0));
  std::int64_t first_end = 0;
  for (std::size_t i = 1; i < sent->results.read_count(0); ++i) {
    const ReadView read = sent->results.read(0, i);
    const std::string id(read.key.substr(queue.leases().size()));
    const std::int64_t end = integer_in(read);
    if (end <= view.now_us) view.open.push_back(id);
    if (view.next.empty() || end < first_end) {
      view.next = id;
      first_end = end;
    }
  }
  return view;
}

// The token is the version of the transaction that takes the job. As long as nobody else takes the job, the lease has
// this version. Returns no text if another worker was faster.
Expected<std::string> take_one(const Server& server, const Queue& queue, const std::string& id, std::int64_t lease_us) {
  Batch batch;
  batch.begin();
  const Key lease = batch.key(queue.lease(id)), work = batch.key(queue.work(id));
  batch.guard_exists(work);
  batch.guard_time_after(lease);  // nobody has it now
  batch.put(lease, BatchTime{});
  batch.add(lease, lease_us);
  batch.get(work);
  batch.end();
  const Expected<RequestResult> sent = server.session.execute(batch);
  if (!sent) return sent.error();
  if (sent->results.outcome(0) != Outcome::committed) return std::string();
  const ResultView result = sent->results.at(0);
  return "took " + id + " " + std::to_string(integer_in(sent->results.read(0, 0))) + " " +
         std::to_string(result.version.value_or(0)) + " until " + std::to_string(result.batch_time_us + lease_us);
}

// Waits until a new job is submitted, or until the lease of the job `next` ends or its job is done.
Error wait(const Server& server, const Queue& queue, const View& view, std::int64_t wait_us) {
  Batch batch;
  TransactionOptions options;
  options.wait_timeout_us = static_cast<std::uint64_t>(wait_us);
  batch.begin(options);
  if (!view.next.empty()) batch.guard_time_before(batch.key(queue.lease(view.next)));  // false: it ends the wait
  batch.guard(batch.key(queue.submitted()), Compare::greater, view.submitted, OnFalse::wait);
  batch.end();
  return server.session.execute(batch).error();
}

Expected<std::string> take(const Server& server, const Queue& queue, std::int64_t lease_us, std::int64_t wait_us) {
  static std::minstd_rand random{std::random_device()()};
  std::int64_t until_us = 0;
  for (;;) {
    Expected<View> view = look(server, queue);
    if (!view) return view.error();
    std::shuffle(view->open.begin(), view->open.end(), random);  // so that few workers want the same job
    for (const std::string& id : view->open) {
      Expected<std::string> taken = take_one(server, queue, id, lease_us);
      if (!taken || !taken->empty()) return taken;
    }
    if (!view->open.empty()) continue;
    if (until_us == 0) until_us = view->now_us + wait_us;
    if (view->now_us >= until_us) return std::string("nothing");
    if (const Error error = wait(server, queue, *view, until_us - view->now_us)) return error;
  }
}

Expected<std::string> finish(const Server& server, const Queue& queue, const std::string& id, std::int64_t number,
                             std::int64_t token) {
  Batch batch;
  batch.begin();
  const Key lease = batch.key(queue.lease(id)), done = batch.key(queue.done(id));
  batch.guard_version(lease, static_cast<std::uint64_t>(token));  // nobody has taken it since
  batch.add(batch.key(queue.sum()), number);                      // the result, in the same transaction
  batch.put(done, token);
  batch.del(lease);
  batch.del(batch.key(queue.work(id)));
  batch.otherwise();
  batch.get(done);
  batch.end();
  const Expected<RequestResult> sent = server.session.execute(batch);
  if (!sent) return sent.error();
  const ResultView result = sent->results.at(0);
  const std::string at = id + " at " + std::to_string(result.batch_time_us);
  if (result.outcome == Outcome::committed) return "finished " + at;
  if (result.outcome != Outcome::guard_failed) return std::string(to_string(result.outcome));
  // An earlier run of this command has finished it, or another worker has the job, or had it.
  return (integer_in(sent->results.read(0, 0)) == token ? "finished " : "lost ") + at;
}

Expected<std::string> command(const Server& server, const Words& words) {
  if (words.size() < 4) return wrong_command();
  const std::string& verb = words[0];
  const Queue queue{"jobs/" + words[1] + "/"};
  const auto numbers = integers_of(words, verb == "take" ? 2 : 3);
  if (!numbers) return wrong_command();
  if (verb == "submit" && words.size() == 4) return submit(server, queue, words[2], numbers->at(0));
  if (verb == "take" && words.size() == 4 && numbers->at(0) > 0 && numbers->at(1) >= 0) {
    return take(server, queue, numbers->at(0) * 1000, numbers->at(1) * 1000);
  }
  if (verb == "finish" && words.size() == 5 && numbers->at(1) > 0) {
    return finish(server, queue, words[2], numbers->at(0), numbers->at(1));
  }
  return wrong_command();
}

}  // namespace

int main(int argc, char** argv) { return example::main_of(argc, argv, kUsage, command); }
