import { expect, test } from 'bun:test'
import { createJumpClock } from '../../test/parts/jump-clock.ts'
import { startWeb } from '../../test/parts/web.ts'

const history = '/catalog/history?model=sandbox/echo'

test.each(['/', '/compare', '/catalog/sandbox/echo', '/catalog/entries', history, '/docs/search?q=key'])(
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
