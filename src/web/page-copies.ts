// The list as visitors see it, made once for each turn of the catalog: everybody sees the same one, and it is the largest
// page there is.

import type { Frame, Page } from './page-data.ts'

export type Render = (page: Page, frame: Frame) => string

/** Of one turn. Most visitors narrow nothing; what each one typed is not worth keeping. */
const copiesMax = 16

export function createPageCopies(render: Render): Render {
  // A catalog that is not shown any more takes its copies with it.
  const byTurn = new WeakMap<object, Map<string, string>>()
  return (page, frame) => {
    // Both: a session may have begun or ended between the two.
    if (page.kind !== 'list' || frame.isSignedIn || page.data.isSignedIn) return render(page, frame)
    const copies = byTurn.get(page.data.entries) ?? new Map<string, string>()
    byTurn.set(page.data.entries, copies)
    const name = JSON.stringify([frame.theme, page.data.query])
    const copy = copies.get(name) ?? render(page, frame)
    if (copies.size < copiesMax) copies.set(name, copy)
    return copy
  }
}
