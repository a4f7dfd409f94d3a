/** @jsxImportSource preact */
// Times as the viewer reads them: in the browser's zone, or in UTC. The choice stays in this browser.

import { type ComponentChildren, createContext } from 'preact'
import { useContext, useEffect, useState } from 'preact/hooks'

export type Zone = 'local' | 'utc'

const ZoneContext = createContext<{ readonly zone: Zone; setZone(zone: Zone): void }>({ zone: 'local', setZone() {} })
const storageName = 'tollgate-zone'

export function ZoneProvider({ children }: { readonly children: ComponentChildren }) {
  const [zone, setZone] = useState<Zone>('local')
  useEffect(() => {
    if (localStorage.getItem(storageName) === 'utc') setZone('utc')
  }, [])
  const keep = (next: Zone) => {
    localStorage.setItem(storageName, next)
    setZone(next)
  }
  return <ZoneContext.Provider value={{ zone, setZone: keep }}>{children}</ZoneContext.Provider>
}

export interface ZoneFormats {
  readonly zone: Zone
  /** `15 Nov, 14:02:11` */
  moment(at: string | number): string
  /** `15 Nov 14:00` */
  hour(at: string | number): string
  /** `15 Nov 2026` */
  day(at: string | number): string
  /** `UTC`, or the name of the browser's zone. */
  readonly name: string
}

export function useZone(): ZoneFormats {
  const { zone } = useContext(ZoneContext)
  const timeZone = zone === 'utc' ? { timeZone: 'UTC' } : {}
  const format = (options: Intl.DateTimeFormatOptions) => {
    const formatter = new Intl.DateTimeFormat('en-GB', { ...options, ...timeZone })
    return (at: string | number) => {
      const date = new Date(at)
      // One that is none must not take the page down with it.
      return Number.isNaN(date.getTime()) ? String(at) : formatter.format(date)
    }
  }
  const day = { day: 'numeric', month: 'short' } as const
  const time = { hour: '2-digit', minute: '2-digit' } as const
  return {
    zone,
    moment: format({ ...day, ...time, second: '2-digit' }),
    hour: format({ ...day, ...time }),
    day: format({ ...day, year: 'numeric' }),
    name: zone === 'utc' ? 'UTC' : new Intl.DateTimeFormat().resolvedOptions().timeZone,
  }
}

/** ISO 8601 from the API; the exact one stands in its title. null = never. */
export function Moment({ at, never = '–' }: { readonly at: string | null; readonly never?: string }) {
  const { moment } = useZone()
  if (at === null) return <span class="muted">{never}</span>
  return (
    <time dateTime={at} title={at}>
      {moment(at)}
    </time>
  )
}

export function ZoneSwitch() {
  const { zone, setZone } = useContext(ZoneContext)
  return (
    <label class="tick">
      <input
        type="checkbox"
        checked={zone === 'utc'}
        onChange={({ currentTarget }) => setZone(currentTarget.checked ? 'utc' : 'local')}
      />
      <span>Times in UTC</span>
    </label>
  )
}
