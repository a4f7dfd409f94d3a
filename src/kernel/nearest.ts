// "Did you mean …?": the names closest to one that was not found.

/** Up to `count` names within a few letters of the wanted one, closest first. */
export function nearestNames(wanted: string, names: Iterable<string>, count: number): string[] {
  // At most four, because anyone can make the gateway compare a name with the whole catalog.
  const limit = Math.min(4, Math.max(2, Math.floor(wanted.length / 3)))
  const near: { name: string; distance: number }[] = []
  for (const name of names) {
    if (Math.abs(name.length - wanted.length) > limit) continue
    const distance = editDistance(wanted, name)
    if (distance <= limit) near.push({ name, distance })
  }
  near.sort((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : 1))
  return near.slice(0, count).map((entry) => entry.name)
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const replace = (previous[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1)
      current.push(Math.min(replace, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1))
    }
    previous = current
  }
  return previous[b.length] ?? 0
}
