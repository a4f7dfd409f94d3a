import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onSqlite, openWorld } from '../../test/parts/command-line.ts'
import { managementToken } from '../../test/parts/management.ts'
import { gatewayCommand } from '../../test/parts/program.ts'
import { createId } from '../kernel/ids.ts'

// Some ten processes per test, on a machine that may be busy.

onSqlite((engine) => {
  test('from an empty gateway to a key that has limits, without naming the only workspace or project', async () => {
    await using world = await openWorld(engine)
    expect(await world.run('keys create --name ci')).toMatchObject({
      exit: 4,
      err: 'tollgate: there is no workspace yet.\nTry: tollgate workspaces create NAME\n',
    })
    const made = await world.run('workspaces create acme')
    expect(made.exit).toBe(0)
    expect(made.out).toMatch(/^Workspace "acme" made: ws_[0-9A-Z]{26}\n$/)
    expect((await world.run('projects create web --models acme/*,beta/open')).out).toMatch(
      /^Project "web" made: prj_[0-9A-Z]{26}, models acme\/\*, beta\/open\n$/,
    )
    const key = await world.run(
      'keys create --name ci --models acme/large --rpm 60 --spend-per-day $5 --expires 2028-01-31',
    )
    expect(key.exit).toBe(0)
    expect(key.out).toMatch(/^sk-tg-\S+\n$/)
    expect(key.err).toContain('Limits 60 rpm, $5.00/day; models acme/large. Shown this once:')
    const { data } = await world.json('keys list')
    expect(data).toHaveLength(1)
    expect(data[0]).toMatchObject({
      name: 'ci',
      last4: key.out.trim().slice(-4),
      models: ['acme/large'],
      limits: { requests_per_minute: 60, spend_per_day: '5.00' },
    })
    const list = (await world.run('keys')).out.split('\n')
    expect(list[0]).toMatch(/^ID +NAME {2}SECRET {2}STATUS {2}PROJECT +MODELS +LIMITS +EXPIRES +LAST USED \(UTC\)$/)
    expect(list[1]).toContain(`ci    …${data[0].last4}   active`)
    expect(list[1]).not.toContain('sk-tg')
  })

  test('a key is rotated with an overlap, limited, and revoked without a question where nobody can answer', async () => {
    await using world = await openWorld(engine)
    const workspace = await world.management.make('/api/workspaces', { name: 'acme' })
    await world.management.make(`/api/workspaces/${workspace.id}/projects`, { name: 'web' })
    const { id, secret } = await world.json('keys create --name ci')
    const rotated = await world.run(`keys rotate ${id} --overlap 1h`)
    expect(rotated.exit).toBe(0)
    expect(rotated.out).toMatch(/^sk-tg-\S+\n$/)
    expect(rotated.out.trim()).not.toBe(secret)
    expect((await world.run(`limits put ${id} --tpm 5000`)).out).toBe('was  none\nnow  5,000 tpm\n')
    expect((await world.run(`limits put ${id} --concurrent 3`)).out).toBe('was  5,000 tpm\nnow  3 at once\n')
    expect(await world.json(`limits show ${id}`)).toEqual({ concurrent_requests: 3 })
    expect((await world.run(`limits put ${id}`)).exit).toBe(2)
    expect((await world.run(`limits put ${id} --none`)).out).toBe('was  3 at once\nnow  none\n')
    expect((await world.run(`keys revoke ${id}`)).out).toBe(`Key "ci" (…${rotated.out.trim().slice(-4)}) is revoked.\n`)
    expect((await world.json('keys')).data[0].status).toBe('revoked')
    const actions = (await world.json('audit')).data.map((entry: { action: string }) => entry.action)
    expect(actions.filter((action: string) => action.startsWith('key.'))).toEqual([
      'key.revoke',
      'key.rotate',
      'key.create',
    ])
  })

  test('a top-up with an idempotency key counts once, and the wallet and its ledger say so', async () => {
    await using world = await openWorld(engine)
    const workspace = await world.management.make('/api/workspaces', { name: 'acme' })
    for (const _ of [1, 2]) {
      const ran = await world.run('wallet topup 25 --reference invoice~17 --idempotency-key inv-17')
      expect(ran.exit).toBe(0)
      expect(ran.out).toMatch(/^\$25\.00 put into acme \(ws_\S+\); balance \$25\.00 {3}tr_\S+\n$/)
    }
    expect((await world.run('wallet')).out).toBe(
      `acme (${workspace.id})\n  balance    $25.00\n  held       $0.00 by running requests\n  available  $25.00\n`,
    )
    expect(await world.json(`wallet show ${workspace.id}`)).toMatchObject({ balance: '25.00', currency: 'USD' })
    const [head, row, end] = (await world.run('wallet transfers')).out.split('\n')
    expect(head).toMatch(/^TIME \(UTC\) +KIND +AMOUNT {2}REQUEST OR REFERENCE {2}TRANSFER$/)
    // The clock of the test gateway stands at 1 800 000 000 s.
    expect(row).toMatch(/^2027-01-15 08:00:00 {2}topup {2}\+\$25\.00 {2}invoice 17 +tr_[0-9A-Z]{26}$/)
    expect(end).toBe('')
  })

  test('a correction takes out what was put in wrongly, says what is left, and is refused with what is free', async () => {
    await using world = await openWorld(engine)
    const workspace = await world.management.make('/api/workspaces', { name: 'acme' })
    await world.run('wallet topup 2500')
    for (const _ of [1, 2]) {
      const ran = await world.run(
        `wallet correct ${workspace.id} --take 2475 --reason meant~25 --idempotency-key fix-1`,
      )
      expect(ran).toMatchObject({ exit: 0, err: '' })
      expect(ran.out).toMatch(/^\$2475\.00 taken from acme \(ws_\S+\); balance \$25\.00 {3}tr_\S+\n$/)
    }
    const added = await world.run('wallet correct --add 1 --reason goodwill')
    expect(added.out).toMatch(/^\$1\.00 added to acme \(ws_\S+\); balance \$26\.00 {3}tr_\S+\n$/)
    const short = await world.run('wallet correct --take 26.01 --reason x')
    expect(short.exit).toBe(5)
    expect(short.err).toContain('$26.01 cannot be taken, $26.00 is free.')
    const [, second, first] = (await world.run('wallet transfers')).out.split('\n')
    expect(second).toMatch(/correction +\+\$1\.00 {2}goodwill/)
    expect(first).toMatch(/correction +-\$2475\.00 {2}meant 25/)
    for (const line of ['--reason x', '--take 1 --add 1 --reason x', '--take 1', '--take none --reason x']) {
      expect([line, (await world.run(`wallet correct ${line}`)).exit]).toEqual([line, 2])
    }
    expect((await world.json('wallet')).balance).toBe('26.00')
  })

  test('several workspaces have to be told apart, by id or by name', async () => {
    await using world = await openWorld(engine)
    const one = await world.management.make('/api/workspaces', { name: 'one' })
    const two = await world.management.make('/api/workspaces', { name: 'two' })
    expect(await world.run('wallet')).toEqual({
      exit: 2,
      out: '',
      err: `tollgate: there are several; say which workspace:\n  ${one.id}  one\n  ${two.id}  two\nTry: --workspace ${one.id}\n`,
    })
    await world.run('wallet topup 3 --workspace two')
    expect((await world.json(`wallet ${two.id}`)).balance).toBe('3.00')
    expect((await world.json(`wallet --workspace one`)).balance).toBe('0.00')
    expect((await world.run('wallet topup 3 --workspace tow')).exit).toBe(4)
    expect((await world.json('workspaces')).data.map(({ name }: { name: string }) => name)).toEqual(['one', 'two'])
    expect(await world.json(`workspaces show ${two.id}`)).toMatchObject({ name: 'two', wallet: { balance: '3.00' } })
  })

  test('a provider key comes from the standard input and is never seen again', async () => {
    await using world = await openWorld(engine)
    const { id } = await world.management.make('/api/workspaces', { name: 'acme' })
    const put = await world.run('credentials put acme', { input: 'sk-provider-secret-9876\n' })
    expect(put).toEqual({ exit: 0, out: `Key …9876 for acme is stored in ${id}.\n`, err: '' })
    expect((await world.run('credentials')).out).toMatch(
      /^PROVIDER +KEY +BASE URL +STORED \(UTC\)\nacme +…9876 +– +2027/,
    )
    expect(await world.run('credentials put acme')).toMatchObject({ exit: 2, err: expect.stringContaining('no key') })
    expect(await world.run('credentials put acme sk-in-the-history')).toMatchObject({ exit: 2 })
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-key-'))
    writeFileSync(join(folder, 'acme.key'), 'sk-from-a-file-5432\n')
    expect((await world.run(`credentials put acme --file ${folder}/acme.key`)).out).toContain('Key …5432 for acme')
    const nowhere = await world.run(`credentials put acme --file ${folder}/nothing`)
    rmSync(folder, { recursive: true })
    expect(nowhere).toMatchObject({ exit: 2, err: expect.stringContaining('cannot be read (ENOENT)') })
    expect(await world.run('credentials put acme', { input: '{' })).toMatchObject({
      exit: 2,
      err: expect.stringContaining('--file FILE'),
    })
    expect((await world.run('credentials delete acme')).exit).toBe(0)
    expect((await world.run('credentials delete acme')).exit).toBe(4)
  })

  test('models that only a workspace’s own key opens are listed, with whose key it is', async () => {
    await using world = await openWorld(engine)
    await world.run('workspaces create acme')
    await world.run('projects create web --models own/fast,acme/large')
    expect((await world.run('models')).out).not.toContain('own/fast')
    await world.run('credentials put acme', { input: 'sk-of-the-workspace' })
    const [titles, ...rows] = (await world.run('models')).out.trimEnd().split('\n')
    expect(titles).toEndWith('VIA')
    expect(rows.map((row) => row.split(' ')[0])).toEqual([
      'acme/large',
      'acme/small',
      'beta/odd',
      'beta/open',
      'own/fast',
    ])
    expect(rows.at(-1)).toMatch(/^own\/fast +– +– +– +– +– +acme \(own key\)$/)
    const ids = async (args: string) => (await world.json(args)).data.map(({ id }: { id: string }) => id)
    expect(await ids('models --project web')).toEqual(['acme/large', 'own/fast'])
    expect((await world.json('models --filter own/')).data).toMatchObject([
      { id: 'own/fast', own_key: true, own_providers: ['acme'], source: 'own key' },
    ])
    expect(await world.run('models --project nothing')).toMatchObject({ exit: 4 })
    await world.run('workspaces create other')
    const several = await world.run('models')
    expect(several.out).not.toContain('own/fast')
    expect(several.err).toContain('--workspace ID also lists what its own provider keys open')
    expect((await world.run('models --workspace acme')).out).toContain('own/fast')
  })

  test('the catalog is filtered, sorted and told with what a price or its absence means', async () => {
    await using world = await openWorld(engine)
    const noToken = { env: { TOLLGATE_ADMIN_TOKEN: '' } }
    expect((await world.run('models', noToken)).out).toBe(
      [
        'MODEL         IN $/M  OUT $/M  CACHED $/M  CONTEXT  MAX OUT  TAGS          VIA',
        'acme/large      2.50    10.00        0.25  200,000   32,000  tools vision  acme',
        'acme/small      0.10     0.40        0.10        –        –  tools',
        'beta/odd    no price        –           –    8,000        –                beta',
        'beta/open       free     free        free        –        –                beta (ejected)',
        '',
      ].join('\n'),
    )
    const ids = async (args: string) => (await world.json(args)).data.map(({ id }: { id: string }) => id)
    expect(await ids('models --sort price')).toEqual(['beta/open', 'acme/small', 'acme/large', 'beta/odd'])
    expect(await ids('models --sort context')).toEqual(['acme/large', 'beta/odd', 'acme/small', 'beta/open'])
    expect(await ids('models --sort newest')).toEqual(['acme/small', 'acme/large', 'beta/odd', 'beta/open'])
    expect(await ids('models --tag tools,vision')).toEqual(['acme/large'])
    expect(await ids('models --filter LARGE')).toEqual(['acme/large'])
  })

  test('requests are listed, shown, explained, and an explanation that does not add up fails', async () => {
    await using world = await openWorld(engine)
    const [right, wrong] = [createId('req'), createId('req')]
    const request = {
      started_at: '2027-01-15T08:00:00.000Z',
      status: 200,
      model: 'acme/large',
      provider: 'acme',
      candidates: [],
      attempts: [{ provider: 'acme', upstream_model: 'l', outcome: 'ok', ms: 9 }],
      usage: { input_tokens: 10, cache_read_tokens: 2, output_tokens: 8, source: 'reported' },
      cost: '0.00002',
      first_event_ms: 41,
      total_ms: 310,
    }
    const lines = [{ kind: 'output', tokens: 8, price_per_million: '2.50', amount: '0.00002' }]
    world.management.logged.push({ ...request, id: right, charge: { lines, total: '0.00002' }, transfers: [] })
    world.management.logged.push({ ...request, id: wrong, charge: { lines, total: '0.00003' }, transfers: [] })
    // A name does as well as an id; one that nothing has is not found.
    for (const command of ['requests --workspace', 'usage --workspace', 'requests --project']) {
      expect([command, (await world.run(`${command} nobody`)).exit]).toEqual([command, 4])
    }
    const listed = (await world.run('requests')).out.split('\n')
    expect(listed[1]).toBe(
      `2027-01-15 08:00:00     200  acme/large  acme      1  12    8  41 ms  310 ms  $0.00002  ${wrong}`,
    )
    expect(listed).toHaveLength(4)
    expect((await world.json('requests --limit 1')).data).toHaveLength(1)
    const explained = await world.run(`explain ${right}`)
    expect([explained.exit, explained.out]).toEqual([0, expect.stringContaining('8 × $2.50 / M    $0.00002')])
    expect((await world.run(`requests show ${right}`)).out).toContain('  first event  41 ms\n')
    expect(await world.run(`explain ${wrong}`)).toMatchObject({
      exit: 1,
      err: 'tollgate: this charge does not add up: the lines add up to $0.00002, not to $0.00003.\nTry: tollgate ledger verify\n',
    })
  })

  test.each([20, 1])('a tail prints what there is up to its limit (%i), then what comes, each once', async (limit) => {
    await using world = await openWorld(engine)
    const ids = [createId('req'), createId('req'), createId('req')] as const
    world.management.logged.push({ id: ids[0] }, { id: ids[1] })
    const args = ['requests', '--follow', '--json', '--limit', String(limit)]
    const child = Bun.spawn([...gatewayCommand(), ...args], {
      cwd: world.folder,
      env: { PATH: process.env.PATH ?? '', TOLLGATE_URL: world.management.url, TOLLGATE_ADMIN_TOKEN: managementToken },
      stdout: 'pipe',
    })
    const expected = ids.slice(limit === 1 ? 1 : 0)
    let text = ''
    for await (const chunk of child.stdout) {
      text += new TextDecoder().decode(chunk)
      const isFirstShown = text.split('\n').length === expected.length
      if (isFirstShown && world.management.logged.length === 2) world.management.logged.push({ id: ids[2] })
      if (text.split('\n').length > expected.length) break
    }
    child.kill()
    await child.exited
    const seen = text.trim().split('\n')
    expect(seen.map((line) => JSON.parse(line).id)).toEqual(expected)
  })
})
