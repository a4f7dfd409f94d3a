// The keys of the board: / to search, arrows from line to line, c to copy an id, x to compare, ? for help. Keys that are
// typed into a field stay there.

import { useEffect } from 'preact/hooks'
import { focusOn, isTyping, openKeyHelp } from '../shell/key-help.tsx'

export const boardKeys: readonly (readonly [string, string])[] = [
  ['/', 'search'],
  ['↓ ↑', 'from model to model'],
  ['Enter', 'open the model'],
  ['c', 'copy its id'],
  ['x', 'choose it for a comparison, up to four'],
  ['?', 'this help'],
]

export function useBoardKeys(choose: (id: string) => void): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return
      if (isTyping(event) && !isStep(event)) return
      if (act(event.key, choose)) event.preventDefault()
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [])
}

/** From the search field an arrow leads to the first model. */
function isStep({ key, target }: KeyboardEvent): boolean {
  return key === 'ArrowDown' && target instanceof HTMLElement && target.id === 'q'
}

/** Whether the key meant something. */
function act(key: string, choose: (id: string) => void): boolean {
  if (key === '/') return focusOn(document.getElementById('q'))
  if (key === 'ArrowDown') return step(1)
  if (key === 'ArrowUp') return step(-1)
  if (key === '?') return openKeyHelp()
  const row = document.activeElement?.closest<HTMLElement>('[data-model]')
  if (!row) return false
  if (key === 'c') row.querySelector<HTMLElement>('[data-copy]')?.click()
  else if (key === 'x') choose(row.dataset.model ?? '')
  else return false
  return true
}

function step(by: 1 | -1): boolean {
  const links = [...document.querySelectorAll<HTMLElement>('.board .model-link')]
  const row = document.activeElement?.closest('[data-model]')
  const at = links.findIndex((link) => link.closest('[data-model]') === row)
  return focusOn(at < 0 ? links[0] : links[at + by])
}
