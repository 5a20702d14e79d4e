// Role: histograms of the server: adds them, takes the difference of two moments, and finds percentiles.
//
// A histogram is {count, sum, buckets: [[bound, cumulative count], ...]}. The bound of the last bucket is null: all.

export const EMPTY = { count: 0, sum: 0, buckets: [] };

export function sumOf(histograms) {
  const [first, ...rest] = histograms;
  if (!first) return EMPTY;
  const sum = { count: first.count, sum: first.sum, buckets: first.buckets.map((bucket) => [...bucket]) };
  for (const other of rest) {
    sum.count += other.count;
    sum.sum += other.sum;
    other.buckets.forEach(([, count], index) => (sum.buckets[index][1] += count));
  }
  return sum;
}

// What was added since `before`. Nothing is left of a server that has started anew in between: then all is new.
export function difference(now, before) {
  if (!before || before.count > now.count || before.buckets.length !== now.buckets.length) return now;
  return {
    count: now.count - before.count,
    sum: now.sum - before.sum,
    buckets: now.buckets.map(([bound, count], index) => [bound, count - before.buckets[index][1]]),
  };
}

export function mean({ count, sum }) {
  return count > 0 ? sum / count : null;
}

// The value below which this share of all values is, from 0 to 1. Within a bucket, values count as evenly spread. The
// last bucket has no bound, so the bound before it is the answer. null: there are no values.
export function percentile({ count, buckets }, share) {
  if (!(count > 0)) return null;
  const rank = share * count;
  let lower = 0;
  let below = 0;
  for (const [bound, cumulative] of buckets) {
    if (cumulative >= rank && cumulative > below) {
      return bound === null ? lower : lower + ((bound - lower) * (rank - below)) / (cumulative - below);
    }
    lower = bound ?? lower;
    below = cumulative;
  }
  return lower;
}
