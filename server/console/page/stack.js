// Role: columns of a stacked chart.

// Each column on top of those before it.
export function stack(columns) {
  const below = columns[0]?.map(() => 0) ?? [];
  return columns.map((column) => column.map((value, index) => (value === null ? null : (below[index] += value))));
}
