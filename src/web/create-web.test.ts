import { expect, test } from 'bun:test'
import { createJumpClock } from '../../test/parts/jump-clock.ts'
import { startWeb } from '../../test/parts/web.ts'

test.each(['/', '/compare', '/catalog/sandbox/echo', '/catalog/entries'])(
  '%s costs strangers of what they may spend, and is refused beyond; the operator is served',
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
