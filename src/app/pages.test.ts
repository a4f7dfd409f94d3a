import { expect, test } from 'bun:test'
import { forEachEngine, type TestEngine } from '../../test/parts/engines.ts'
import { createJumpClock } from '../../test/parts/jump-clock.ts'
import { appendAudit } from '../tenancy/audit.ts'
import { createPages, type PageDependencies } from './pages.ts'

const adminToken = { source: 'a test', file: undefined, fingerprint: 'of a test', matches: () => true }

async function setUp(engine: TestEngine) {
  const store = await engine.openStore()
  const clock = createJumpClock()
  // No page of the catalog is asked for here.
  const unasked = {} as Pick<PageDependencies, 'health' | 'goods'>
  const told = { isHeard: true }
  const { sessions, web, followSignOut } = createPages({
    ...{ ...unasked, database: store.database, clock, adminToken },
    config: () => ({ publicUrl: undefined }) as ReturnType<PageDependencies['config']>,
    announceSignOut: async () => told.isHeard,
  })
  const request = (cookie = '') => new Request('http://127.0.0.1:8080/api/keys', { headers: { cookie } })
  const signIn = () => String(sessions.openByToken(request(), 'the token')).split(';')[0]
  const isSignedIn = (cookie: string | undefined) => sessions.sessionOf(request(cookie)) !== undefined
  const endElsewhere = (at: number) =>
    store.database.transaction((sql) =>
      appendAudit(sql, { actor: 'console session', at, object: 'console', action: 'session.end_all' }),
    )
  const signOutEverywhere = async (cookie = '') => {
    const headers = { cookie, 'sec-fetch-site': 'same-origin' }
    const address = 'http://127.0.0.1:8080/console/sessions'
    return await web.handle(new Request(address, { method: 'DELETE', headers }), '/console/sessions')
  }
  return { ...store, clock, told, signIn, isSignedIn, signOutEverywhere, endElsewhere, followSignOut }
}

forEachEngine((engine) => {
  test('a sign-out that was told ends every session there is', async () => {
    await using desk = await setUp(engine)
    const cookie = desk.signIn()
    expect(desk.isSignedIn(cookie)).toBe(true)
    await desk.followSignOut('surely')
    expect(desk.isSignedIn(cookie)).toBe(false)
    expect(desk.isSignedIn(desk.signIn())).toBe(true)
  })

  test('one that may have been missed is looked up: who was there before it goes, who came well after it stays', async () => {
    await using desk = await setUp(engine)
    const old = desk.signIn()
    await desk.followSignOut('maybe')
    expect(desk.isSignedIn(old)).toBe(true)
    await desk.endElsewhere(desk.clock.now())
    // Clocks of two machines differ, so that a few seconds later is not surely later.
    desk.clock.jump(5)
    const soon = desk.signIn()
    desk.clock.jump(20)
    const late = desk.signIn()
    await desk.followSignOut('maybe')
    expect([old, soon, late].map(desk.isSignedIn)).toEqual([false, false, true])
  })

  test('signing out everywhere that the other replicas cannot be told of is refused, and nobody goes', async () => {
    await using desk = await setUp(engine)
    const [here, there] = [desk.signIn(), desk.signIn()]
    desk.told.isHeard = false
    expect((await desk.signOutEverywhere(here))?.status).toBe(503)
    expect([here, there].map(desk.isSignedIn)).toEqual([true, true])
    desk.told.isHeard = true
    expect((await desk.signOutEverywhere(here))?.status).toBe(200)
    expect([here, there].map(desk.isSignedIn)).toEqual([false, false])
  })
})
