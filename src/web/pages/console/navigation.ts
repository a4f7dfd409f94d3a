// Moves between the console's pages without loading a document: links of the console and the browser's Back and Forward
// change what is shown, and every address has its workspace.

import { createContext } from 'preact'
import { useContext, useEffect, useState } from 'preact/hooks'
import { type ConsolePlace, placeOf, type SectionName, scopedPath, titleOf } from '../../page-data.ts'
import { withQuery } from '../api.ts'

const nowhere: ConsolePlace = { scope: '', section: 'usage', subject: '' }

export const PlaceContext = createContext<ConsolePlace>(nowhere)

export function usePlace(): ConsolePlace {
  return useContext(PlaceContext)
}

/** Turns `requests/req_…` into an address in the current workspace. */
export function useConsolePath(): (path: string) => string {
  const { scope } = usePlace()
  return (path) => `/console/${scope}/${path}`
}

/** The lists and figures of a period. */
const periodSections: readonly SectionName[] = ['usage', 'requests', 'margin', 'bills']

/** The period of the current page for another one, as its address has it. */
function periodFor(next: ConsolePlace): string {
  const now = placeOf(location.pathname)
  if (!now || isSame(now, next) || ![now, next].every(hasPeriod)) return ''
  const { range = '', from = '', to = '' } = Object.fromEntries(new URLSearchParams(location.search))
  if (from === '' && to === '') return withQuery('', { range })
  if (next.section === 'usage') return withQuery('', { range: 'custom', from, to })
  return next.section === 'requests' ? withQuery('', { from, to }) : ''
}

const hasPeriod = ({ section, subject }: ConsolePlace) => subject === '' && periodSections.includes(section)

/**
 * Goes to an address. One of the console without a workspace keeps the current one, and one without filters keeps the
 * period.
 */
export function navigate(href: string): void {
  const url = new URL(href, location.href)
  const path = scopedPath(url.pathname, placeOf(location.pathname)?.scope ?? '')
  const next = placeOf(path)
  if (url.origin !== location.origin || !next) return location.assign(href)
  history.pushState(null, '', path + (url.search || periodFor(next)))
  scrollTo(0, 0)
  // Filters in the address are read again too.
  dispatchEvent(new PopStateEvent('popstate'))
}

/** The place in the address, from the one that the server rendered. */
export function useNavigation(first: ConsolePlace): ConsolePlace {
  const [place, setPlace] = useState(first)
  useEffect(() => {
    const onMove = () => {
      const next = placeOf(location.pathname)
      // An address of a time before the last deployment, for example.
      if (!next || next.scope === '') return location.reload()
      document.title = `${titleOf(next)} · Tollgate`
      setPlace((before) => (isSame(before, next) ? before : next))
    }
    addEventListener('popstate', onMove)
    document.addEventListener('click', followLink)
    return () => {
      removeEventListener('popstate', onMove)
      document.removeEventListener('click', followLink)
    }
  }, [])
  return place
}

/** Names the document after the thing that the page is about, once that is known. */
export function useTitle(name: string): void {
  useEffect(() => {
    document.title = `${name} · Tollgate`
  }, [name])
}

function isSame(a: ConsolePlace, b: ConsolePlace): boolean {
  return a.scope === b.scope && a.section === b.section && a.subject === b.subject
}

/** Leaves to the browser what opens elsewhere, downloads, or is not a page of the console. */
function followLink(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0) return
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
  const link = event.target instanceof Element ? event.target.closest('a') : null
  if (link?.target !== '' || link.hasAttribute('download') || link.origin !== location.origin) return
  if (!placeOf(link.pathname)) return
  event.preventDefault()
  navigate(link.href)
}
