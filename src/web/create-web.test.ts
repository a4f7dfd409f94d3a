import { expect, test } from 'bun:test'
import { createJumpClock } from '../../test/parts/jump-clock.ts'
import { sandboxEntries, startWeb } from '../../test/parts/web.ts'
import { parseQuery } from './catalog/query.ts'
import { cacheListPages } from './create-web.ts'
import type { Frame } from './page-data.ts'

const history = '/catalog/history?model=sandbox/echo'

test.each(['/', '/compare', '/catalog/sandbox/echo', '/catalog/entries', history])(
  '%s counts against the visitors’ budget and is refused beyond it; signed-in users are served',
  async (path) => {
    const clock = createJumpClock()
    const web = await startWeb({ clock })
    try {
      const signedIn = await fetch(`${web.url}/console/session`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', origin: web.url },
        body: JSON.stringify({ token: web.token }),
      })
      const cookie = signedIn.headers.get('set-cookie')?.split(';')[0] ?? ''
      const view = async (headers: Record<string, string> = {}) => (await fetch(web.url + path, { headers })).status
      expect(await view()).toBe(200)
      await web.budget.spend(() => clock.jump(4))
      expect(await view()).toBe(503)
      expect(await view({ cookie })).toBe(200)
      clock.jump(8)
      expect(await view()).toBe(200)
    } finally {
      await web.stop()
    }
  },
)

test('a page rendered during a change has the state of its entries, so that it reloads', async () => {
  const clock = createJumpClock()
  const web = await startWeb({ clock })
  try {
    const stateNow = async () => ((await (await fetch(`${web.url}/catalog/entries`)).json()) as { state: string }).state
    const before = await stateNow()
    Object.defineProperty(web.histories, 'sandbox/echo', {
      get() {
        web.entries = web.entries.slice(1)
        clock.jump(1)
        return []
      },
    })
    const page = await (await fetch(`${web.url}/catalog/sandbox/echo`)).text()
    expect(page.includes(`"state":"${before}"`)).toBe(true)
    expect(await stateNow()).not.toBe(before)
  } finally {
    await web.stop()
  }
})

const frame: Frame = {
  theme: 'system',
  version: '1',
  isSignedIn: false,
  styleUrl: '',
  iconUrl: '',
  fontUrls: [],
  scriptUrl: '',
}

test('visitors share the cached list of a snapshot, per theme and query', () => {
  let made = 0
  const render = cacheListPages(() => String(++made))
  let entries = sandboxEntries()
  const list = (search = '', more: Partial<Frame> = {}) => {
    const data = { entries, state: 's', query: parseQuery(new URLSearchParams(search)), isSignedIn: false }
    return render({ kind: 'list', title: 'Models', data }, { ...frame, ...more })
  }
  expect([list(), list(), list('q=a'), list('q=a'), list('', { theme: 'dark' })]).toEqual(['1', '1', '2', '2', '3'])
  expect([list('', { isSignedIn: true }), list('', { isSignedIn: true })]).toEqual(['4', '5'])
  entries = [...entries]
  expect([list(), list()]).toEqual(['6', '6'])
})

test('a page rendered for a session is not cached for visitors', () => {
  let made = 0
  const render = cacheListPages(() => String(++made))
  const shared = { entries: sandboxEntries(), state: 's', query: parseQuery(new URLSearchParams()) }
  const list = (isSignedIn: boolean) =>
    render({ kind: 'list', title: 'Models', data: { ...shared, isSignedIn } }, frame)
  expect([list(true), list(false), list(false)]).toEqual(['1', '2', '2'])
})

test('the number of cached pages is limited', () => {
  let made = 0
  const render = cacheListPages(() => String(++made))
  const entries = sandboxEntries()
  for (let round = 0; round < 2; round++) {
    for (let at = 0; at < 20; at++) {
      const query = parseQuery(new URLSearchParams(`q=${at}`))
      render({ kind: 'list', title: 'Models', data: { entries, state: 's', query, isSignedIn: false } }, frame)
    }
  }
  // Sixteen are cached, four are rendered again.
  expect(made).toBe(24)
})
