// The keys of the console: g and a letter for a page, / to search, j and k from row to row, u to undo, ? for help; a pasted
// request id opens that request. Keys that are typed into a field stay there.

import { useEffect } from 'preact/hooks'
import { consoleSections, sectionPath } from '../../../console-sections.ts'
import { focusOn, isTyping, openKeyHelp } from '../../shell/key-help.tsx'

/** How long `g` waits for its letter. */
const chordMs = 1_500

export function useConsoleKeys(): void {
  useEffect(() => {
    let isWaiting = false
    let timer: ReturnType<typeof setTimeout> | undefined
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return
      const isChord = isWaiting
      isWaiting = false
      clearTimeout(timer)
      if (isChord) {
        if (goTo(event.key)) event.preventDefault()
      } else if (event.key === 'g') {
        isWaiting = true
        timer = setTimeout(() => {
          isWaiting = false
        }, chordMs)
      } else if (act(event.key)) event.preventDefault()
    }
    const onPaste = (event: ClipboardEvent) => {
      const id = event.clipboardData?.getData('text').trim() ?? ''
      if (!isTyping(event) && /^req_[0-9A-Z]{26}$/.test(id)) location.assign(`/console/requests/${id}`)
    }
    document.addEventListener('keydown', onKey)
    document.addEventListener('paste', onPaste)
    return () => {
      clearTimeout(timer)
      document.removeEventListener('keydown', onKey)
      document.removeEventListener('paste', onPaste)
    }
  }, [])
}

function goTo(key: string): boolean {
  const section = consoleSections.find((each) => each.key === key)
  if (section) location.assign(sectionPath(section.name))
  return section !== undefined
}

/** Whether the key meant something. */
function act(key: string): boolean {
  if (key === '/') return focusOn(document.querySelector<HTMLElement>('[data-search]'))
  if (key === 'j' || key === 'ArrowDown') return step(1)
  if (key === 'k' || key === 'ArrowUp') return step(-1)
  if (key === 'u') return press(document.querySelector<HTMLElement>('[data-undo]'))
  return key === '?' && openKeyHelp()
}

function step(by: 1 | -1): boolean {
  const links = [...document.querySelectorAll<HTMLElement>('.data-table .row-link')]
  const row = document.activeElement?.closest('tr')
  const at = links.findIndex((link) => link.closest('tr') === row)
  return focusOn(row && at >= 0 ? links[at + by] : links[0])
}

function press(element: HTMLElement | null): boolean {
  element?.click()
  return element !== null
}

export const consoleKeys: readonly (readonly [string, string])[] = [
  ['⌘K', 'or Ctrl K: jump to a page, model, key or request'],
  ...consoleSections.map(({ key, label }) => [`g ${key}`, label] as const),
  ['/', 'search'],
  ['j k', 'from row to row'],
  ['Enter', 'open it'],
  ['u', 'undo the last change, while that is offered'],
  ['?', 'this help'],
  ['paste', 'a request id, to open it'],
]
