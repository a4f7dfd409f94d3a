import { describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onSqlite, openWorld, ranOf } from '../../test/parts/command-line.ts'
import { testWith } from '../../test/parts/engines.ts'
import { catalogItem, managementToken } from '../../test/parts/management.ts'
import { createId } from '../kernel/ids.ts'
import { namesOf } from './lookup.ts'

onSqlite((engine) => {
  const storeTest = testWith(() => openWorld(engine))

  storeTest(
    'creates everything up to a key with limits, without naming the only workspace or project',
    async (world) => {
      expect(await world.run('keys create --name ci')).toMatchObject({
        exit: 4,
        err: 'tollgate: there is no workspace yet.\nTry: tollgate workspaces create NAME\n',
      })
      const made = await world.run('workspaces create acme')
      expect(made.exit).toBe(0)
      expect(made.out).toMatch(/^Workspace "acme" created: ws_[0-9A-Z]{26}\n$/)
      expect((await world.run('projects create web --models acme/*,beta/open')).out).toMatch(
        /^Project "web" created: prj_[0-9A-Z]{26}, models acme\/\*, beta\/open\n$/,
      )
      const key = await world.run(
        'keys create --name ci --models acme/large --rpm 60 --spend-per-day $5 --expires 2028-01-31',
      )
      expect(key.exit).toBe(0)
      expect(key.out).toMatch(/^sk-tg-\S+\n$/)
      expect(key.err).toContain('Limits 60 rpm, $5.00/day; models acme/large. Shown only once:')
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
    },
  )

  storeTest(
    'rotates a key with an overlap, limits it, and revokes it without a question if not interactive',
    async (world) => {
      const workspace = await world.management.make('/api/workspaces', { name: 'acme' })
      await world.management.make(`/api/workspaces/${workspace.id}/projects`, { name: 'web' })
      const { id, secret } = await world.json('keys create --name ci')
      const rotated = await world.run(`keys rotate ${id} --overlap 1h`)
      expect(rotated.exit).toBe(0)
      expect(rotated.out).toMatch(/^sk-tg-\S+\n$/)
      expect(rotated.out.trim()).not.toBe(secret)
      expect((await world.run(`limits put ${id} --tpm 5000`)).out).toBe('was  none\nnow  5,000 tpm\n')
      expect((await world.run(`limits put ${id} --concurrent 3`)).out).toBe('was  5,000 tpm\nnow  3 at once\n')
      expect(await world.json(`limits show ${id}`)).toEqual({ concurrent_requests: 3, spend: [] })
      expect((await world.run(`limits put ${id}`)).exit).toBe(2)
      expect((await world.run(`limits put ${id} --none`)).out).toBe('was  3 at once\nnow  none\n')
      expect((await world.run(`keys revoke ${id}`)).out).toBe(
        `Key "ci" (…${rotated.out.trim().slice(-4)}) is revoked.\n`,
      )
      expect((await world.json('keys')).data[0].status).toBe('revoked')
      const actions = (await world.json('audit')).data.map((entry: { action: string }) => entry.action)
      expect(actions.filter((action: string) => action.startsWith('key.'))).toEqual([
        'key.revoke',
        'key.rotate',
        'key.create',
      ])
    },
  )

  storeTest('finds keys, projects and limits by name', async (world) => {
    const workspace = await world.management.make('/api/workspaces', { name: 'acme' })
    const project = await world.management.make(`/api/workspaces/${workspace.id}/projects`, { name: 'web' })
    const { id } = await world.json('keys create --name ci')
    expect((await world.run('keys rotate ci')).out).toMatch(/^sk-tg-\S+\n$/)
    const shown = (await world.run('keys show ci')).out
    expect(shown).toContain(`\n  id          ${id}\n`)
    expect(shown).toContain(`\n  project     web (${project.id})\n`)
    expect(shown).toContain('\n  last used   not used yet, or only in the last minute\n')
    expect((await world.run('projects get web')).out).toMatch(new RegExp(`\n  id +${project.id}\n`))
    expect((await world.run('limits put ci --tpm 5000')).out).toBe('was  none\nnow  5,000 tpm\n')
    expect((await world.run('limits put web --rpm 5')).out).toBe('was  none\nnow  5 rpm\n')
    expect((await world.run('limits put acme --rpm 9')).out).toBe('was  none\nnow  9 rpm\n')
    expect(await world.run('limits put nobody --rpm 9')).toEqual({
      ...{ exit: 4, out: '' },
      err: 'tollgate: there is no workspace, project or active key "nobody".\nTry: tollgate keys list\n',
    })
    // Equal names: the id decides. A revoked key does not count.
    const twin = await world.json('keys create --name ci')
    const several = await world.run('keys revoke ci')
    expect(several).toEqual({
      ...{ exit: 2, out: '' },
      err: `tollgate: there are several of this name; give the id:\n  ${id}  ci\n  ${twin.id}  ci\nTry: tollgate keys list\n`,
    })
    expect((await world.run(`keys revoke ${twin.id}`)).exit).toBe(0)
    expect((await world.run('keys delete ci')).out).toMatch(/^Key "ci" \(…\w{4}\) is revoked\.\n$/)
    expect(await world.run('keys revoke ci')).toMatchObject({
      exit: 4,
      err: 'tollgate: there is no active key "ci".\nTry: tollgate keys list\n',
    })
    expect((await world.run('requests --key ci')).exit).toBe(4)
    expect((await world.run(`requests --key ${id}`)).exit).toBe(0)
  })

  storeTest('limits show --subject shows what one subject has used of each limit', async (world) => {
    const workspace = await world.management.make('/api/workspaces', { name: 'acme' })
    expect((await world.run('groups create design')).exit).toBe(0)
    const limits = [
      { subject: 'group:design', window: 'month', limit: '8', slow_down: 6 },
      { subject: 'user', models: '!a/one', window: '5h', limit: '2.5' },
    ]
    const set = await world.management.ask('PUT', `/api/workspaces/${workspace.id}/limits`, {
      body: { spend_limits: limits },
    })
    expect(set.status).toBe(200)
    const [title, head, row] = (await world.run('limits show --subject group:design')).out.split('\n')
    expect(title).toBe('group:design')
    expect(head).toMatch(/^LIMIT OF {6}WINDOW {2}SPENT {2}LIMIT {2}USED {2}STATE +AT THE LIMIT +SET IN$/)
    const atLimit = '6 per minute from 80 %, refused'
    expect(row).toMatch(new RegExp(`^group:design  month   \\$0.00  \\$8.00   0 %  .+  ${atLimit}  workspace acme$`))
    expect((await world.run('limits show --subject user:eu_1')).out).toMatch(
      /\neach user !a\/one {2}5h {6}\$0.00 {2}\$2.50 {3}0 % {2}.+ {2}refused {7}workspace acme\n$/,
    )
    expect((await world.run('limits show --subject tag:team=web')).out).toBe(
      'tag:team=web\nNo spend limit counts it.\n',
    )
    expect((await world.json('limits show --subject group:design')).limits).toHaveLength(1)
    expect(await world.run('limits show --subject group:none')).toMatchObject({
      exit: 4,
      err: expect.stringContaining('There is no group none.'),
    })
    const wrong = await world.run('limits show --subject ada')
    expect([wrong.exit, wrong.err]).toEqual([2, expect.stringContaining('must be one of user:ID, tag:team=web')])
    for (const args of ['limits show', 'limits show acme --subject user:x']) {
      expect(await world.run(args)).toMatchObject({
        exit: 2,
        err: 'tollgate: give a key, project or workspace, or --subject.\nTry: tollgate limits show --help\n',
      })
    }
  })

  storeTest('limits set changes only what is given', async (world) => {
    const workspace = await world.management.make('/api/workspaces', { name: 'acme' })
    await world.management.make(`/api/workspaces/${workspace.id}/projects`, { name: 'web' })
    await world.json('keys create --name ci --rpm 60 --spend-per-day 5')
    expect((await world.run('limits set ci --concurrent 3 --spend-per-day 7')).out).toBe(
      'was  60 rpm, $5.00/day\nnow  60 rpm, 3 at once, $7.00/day\n',
    )
    expect((await world.run('limits set ci --rpm none')).out).toBe(
      'was  60 rpm, 3 at once, $7.00/day\nnow  3 at once, $7.00/day\n',
    )
    expect(await world.run('limits set ci')).toMatchObject({ exit: 2, out: '' })
    expect((await world.json('limits get ci')).concurrent_requests).toBe(3)
  })

  storeTest('deletes a project by its name, and lists archived ones only if asked', async (world) => {
    const workspace = await world.management.make('/api/workspaces', { name: 'acme' })
    const place = `/api/workspaces/${workspace.id}/projects`
    const [web, api] = [
      await world.management.make(place, { name: 'web' }),
      await world.management.make(place, { name: 'api' }),
    ]
    const { id } = await world.json('keys create --name ci --project web')
    expect((await world.run('projects delete web')).out).toBe(`Project ${web.id} is deleted. 1 key revoked.\n`)
    expect(await world.run('projects delete web')).toMatchObject({
      exit: 4,
      err: 'tollgate: there is no project "web".\nTry: tollgate projects list\n',
    })
    expect((await world.run(`keys show ${id}`)).exit).toBe(4)
    const used = await world.json('keys create --name ci --project api')
    const use = { key_id: used.id, last_used_at: 1_700_000_000_000n }
    await world.management.database.transaction((sql) => sql`INSERT INTO key_uses ${sql([use])}`)
    expect((await world.run('projects delete api')).out).toBe(
      `Project ${api.id} is archived: its requests and charges stay. 1 key revoked.\n`,
    )
    expect((await world.json('projects')).data).toEqual([])
    expect((await world.json('projects ls --archived')).data).toMatchObject([
      { name: 'api', archived_at: '2027-01-15T08:00:00.000Z' },
    ])
    // The list of keys still names it.
    expect((await world.run('keys')).out).toMatch(/ revoked +api /)
  })

  storeTest('errors and answers name what was given and what to do', async (world) => {
    await world.management.make('/api/workspaces', { name: 'acme' })
    const errors = {
      'wallet topup 99999999999': 'AMOUNT must be below 10000000000 (USD), not "99999999999".',
      'wallet topup 5000000000': 'AMOUNT of $5000000000.00 is above $1000000.00, the maximum of one transfer.',
      'wallet topup 1,000': 'AMOUNT must be an amount in USD such as 25 or 0.50, not "1,000".',
    }
    for (const [line, error] of Object.entries(errors)) {
      expect([line, (await world.run(line)).err.split('\n')[0]]).toEqual([line, `tollgate: ${error}`])
    }
    const said = async (line: string) =>
      (await world.run(`workspaces update acme ${line}`)).out.replace(/ \(ws_\w+\)/, '')
    expect(await said('--no-price-list')).toBe('Workspace "acme" is updated; it pays the catalog prices.\n')
    expect(await said('--name acme')).toBe('Workspace "acme" is updated.\n')
    await world.run('wallet topup 3')
    await world.run('wallet correct --take 1 --reason mistake')
    expect((await world.run('statements')).out).toMatch(/correction +mistake +-\$1\.00\n/)
  })

  storeTest('prices update says what a price list is', async (world) => {
    const list =
      'it is not a price list, which is a JSON array [{"id", "price"}], the catalog of a Tollgate, OpenRouter\'s list or the data of genai-prices'
    const reasons = { '{"hello":1}': list, '<html>': list, '[{"name":"x"}]': list, '[]': 'it has no entries' }
    for (const [at, [text, why]] of Object.entries(reasons).entries()) {
      const file = join(world.folder, `list-${at}.json`)
      writeFileSync(file, text)
      const ran = await world.run(`prices update ${file}`)
      expect([ran.exit, ran.err.split('\n')[0]]).toEqual([1, `tollgate: ${file} cannot be used: ${why}`])
    }
    const absent = join(world.folder, 'absent.json')
    expect((await world.run(`prices update ${absent}`)).err).toStartWith(`tollgate: there is no file ${absent}.\n`)
  })

  storeTest('says what comes next', async (world) => {
    const made = await world.run('workspaces create acme')
    const workspace = /ws_\w+/.exec(made.out)?.[0]
    expect(made.err).toBe(
      `Next: tollgate wallet topup 10 --workspace ${workspace}\n      tollgate projects create NAME --workspace ${workspace}\n`,
    )
    const project = await world.run('projects create web')
    expect(project.err).toBe(`Next: tollgate keys create --name NAME --project ${/prj_\w+/.exec(project.out)?.[0]}\n`)
    const key = await world.run('keys create --name ci')
    const { url } = world.management
    expect(key.err).toContain(
      `Use it with ${url}/v1 (OpenAI) or ${url} (Anthropic, Gemini). Next: tollgate requests --key ${/key_\w+/.exec(key.err)?.[0]}\n`,
    )
  })

  storeTest('counts a top-up with an idempotency key once in the wallet and its transfers', async (world) => {
    const workspace = await world.management.make('/api/workspaces', { name: 'acme' })
    for (const _ of [1, 2]) {
      const ran = await world.run('wallet topup 25 --reference invoice~17 --idempotency-key inv-17')
      expect(ran.exit).toBe(0)
      expect(ran.out).toMatch(/^\$25\.00 added to acme \(ws_\S+\); balance \$25\.00 {3}tr_\S+\n$/)
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

  storeTest('corrects a wallet, shows the balance, and refuses to take more than is available', async (world) => {
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
    expect(short.err).toContain('Cannot take $26.01; $26.00 is available.')
    const [, second, first] = (await world.run('wallet transfers')).out.split('\n')
    expect(second).toMatch(/correction +\+\$1\.00 {2}goodwill/)
    expect(first).toMatch(/correction +-\$2475\.00 {2}meant 25/)
    for (const line of ['--reason x', '--take 1 --add 1 --reason x', '--take 1', '--take none --reason x']) {
      expect([line, (await world.run(`wallet correct ${line}`)).exit]).toEqual([line, 2])
    }
    expect((await world.json('wallet')).balance).toBe('26.00')
  })

  storeTest('means the workspace and the project called default if none is named', async (world) => {
    const usual = await world.management.make('/api/workspaces', { name: 'default' })
    await world.management.make('/api/workspaces', { name: 'other' })
    const project = await world.management.make(`/api/workspaces/${usual.id}/projects`, { name: 'default' })
    await world.management.make(`/api/workspaces/${usual.id}/projects`, { name: 'web' })
    expect((await world.json('keys create --name ci')).project_id).toBe(project.id)
    expect((await world.run('console')).out).toMatch(/^http:.*\/console\?t=once\n$/)
    const refused = await world.run('keys revoke key_01KA8M0Q2V7TSCXZ9Y5D3E1F4G --json')
    expect([refused.out, JSON.parse(refused.err).error.exit_code]).toEqual(['', 4])
  })

  storeTest('asks for the workspace by id or name if there are several', async (world) => {
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
    expect(await world.json('workspaces update two --shares-routes yes')).toMatchObject({
      id: two.id,
      shares_routes: true,
    })
    expect((await world.run('workspaces update tow --shares-routes yes')).err).toBe(
      'tollgate: there is no workspace "tow".\nTry: tollgate workspaces list\n',
    )
    expect((await world.run('keys create --name ci --workspace two')).err).toBe(
      'tollgate: there is no project yet.\nTry: tollgate projects create NAME --workspace two\n',
    )
  })

  storeTest('reads a provider key from the standard input and never shows it', async (world) => {
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

  storeTest('lists models that only a workspace’s own key makes available, and marks them', async (world) => {
    await world.run('workspaces create acme')
    await world.run('projects create web --models own/fast,acme/large')
    expect((await world.run('models')).out).not.toContain('own/fast')
    await world.run('credentials put acme', { input: 'sk-of-the-workspace' })
    const [titles, ...rows] = (await world.run('models')).out.trimEnd().split('\n')
    expect(titles).toEndWith('VIA')
    expect(rows.map((row) => row.split(' ')[0])).toEqual('acme/large acme/small beta/odd beta/open own/fast'.split(' '))
    expect(rows.at(-1)).toMatch(/^own\/fast +own key +– +– +– +– +– +acme \(own key\)$/)
    const ids = async (args: string) => (await world.json(args)).data.map(({ id }: { id: string }) => id)
    expect(await ids('models --project web')).toEqual(['acme/large', 'own/fast'])
    expect((await world.json('models --filter own/')).data).toMatchObject([
      { id: 'own/fast', own_key: true, own_providers: ['acme'], source: 'own key' },
    ])
    expect(await world.run('models --project nothing')).toMatchObject({ exit: 4 })
    await world.run('workspaces create other')
    const several = await world.run('models')
    expect(several.out).not.toContain('own/fast')
    expect(several.err).toContain('--workspace ID also lists the models of its provider keys')
    expect((await world.run('models --workspace acme')).out).toContain('own/fast')
  })

  storeTest('filters and sorts the catalog, and shows prices and missing prices', async (world) => {
    const noToken = { env: { TOLLGATE_ADMIN_TOKEN: '' } }
    expect((await world.run('models', noToken)).out).toBe(
      [
        'MODEL       STATE                IN $/M  OUT $/M  CACHED $/M  CONTEXT  MAX OUT  TAGS          VIA',
        'acme/large  no recent traffic      2.50    10.00        0.25  200,000   32,000  tools vision  acme',
        'acme/small  no route               0.10     0.40        0.10        –        –  tools',
        'beta/odd    not callable       no price        –           –    8,000        –                beta',
        'beta/open   cooldown               free     free        free        –        –                beta (cooldown)',
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

  storeTest('lists, shows and explains requests, and fails if an explanation does not add up', async (world) => {
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
      expect([command, (await world.run(`${command} unknown`)).exit]).toEqual([command, 4])
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

  test.each([20, 1])('follows requests: prints the last %i, then new ones, each once', async (limit) => {
    await using world = await openWorld(engine)
    const ids = [createId('req'), createId('req'), createId('req')] as const
    world.management.logged.push({ id: ids[0] }, { id: ids[1] })
    const child = world.spawn(`requests --follow --json --limit ${limit}`)
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

test('shows the id after an ambiguous name, and in place of an unknown one', () => {
  const name = namesOf([
    { id: 'prj_1', name: 'web' },
    { id: 'prj_2', name: 'twin' },
    { id: 'prj_3', name: 'twin' },
  ])
  expect(['prj_1', 'prj_2', 'prj_3', 'prj_4'].map(name)).toEqual(['web', 'twin (prj_2)', 'twin (prj_3)', 'prj_4'])
})

onSqlite((engine) => {
  test('notes other objects with the same name on creation', async () => {
    await using world = await openWorld(engine)
    const notes = async (args: string) => (await world.run(args)).err.split('\n').filter((line) => /^Note/.test(line))
    expect(await notes('workspaces create acme')).toEqual([])
    const [acme] = (await world.json('workspaces')).data
    const note = `Note: another workspace has the name "acme": ${acme.id}`
    expect(await notes('workspaces create acme')).toEqual([note])

    const create = `projects create web --workspace ${acme.id}`
    expect(await notes(create)).toEqual([])
    const [web] = (await world.json(`projects --workspace ${acme.id}`)).data
    expect(await notes(create)).toEqual([`Note: another project has the name "web": ${web.id}`])

    const createKey = `keys create --name ci --project ${web.id}`
    expect(await notes(createKey)).toEqual([])
    const [key] = (await world.json('keys')).data
    expect(await notes(createKey)).toEqual([`Note: another key has the name "ci": ${key.id}`])
    // Revoked keys do not count.
    for (const { id } of (await world.json('keys')).data) await world.run(`keys revoke ${id}`)
    expect(await notes(createKey)).toEqual([])
  })

  test('lists keys with the names of their projects, and with ids where names are equal', async () => {
    await using world = await openWorld(engine)
    const workspace = await world.management.make('/api/workspaces', { name: 'acme' })
    const projects = `/api/workspaces/${workspace.id}/projects`
    const web = await world.management.make(projects, { name: 'web' })
    await world.management.make(`/api/projects/${web.id}/keys`, { name: 'ci' })
    expect((await world.run('keys')).out).toContain(' active  web ')
    await world.management.make(projects, { name: 'web' })
    expect((await world.run('keys')).out).toContain(` active  web (${web.id}) `)
  })

  test('creates a project and a key that can call no model with a warning', async () => {
    const modelsOf = async ({ models }: { readonly models?: readonly string[] | undefined }) =>
      models?.includes('openai/*') ? [] : [{ ...catalogItem, id: 'acme/large', own_key: false, own_providers: [] }]
    await using world = await openWorld(engine, { modelsOf })
    await world.management.make('/api/workspaces', { name: 'acme' })
    const warned = async (args: string) => {
      const { exit, err } = await world.run(args)
      expect(exit).toBe(0)
      return /^Warning: this (project|key) cannot call any available model/m.exec(err)?.[1]
    }
    expect(await warned('projects create web --models openai/*')).toBe('project')
    expect(await warned('keys create --name ci')).toBe('key')
    expect(await warned('projects update web --models acme/*')).toBeUndefined()
    expect(await warned('keys create --name two')).toBeUndefined()
    expect(await warned('keys create --name three --models beta/open')).toBe('key')
    expect(await warned('keys create --name four --models acme/large')).toBeUndefined()
    expect(await warned('projects update web --models openai/*')).toBe('project')
  })
})

onSqlite((engine) => {
  const storeTest = testWith(() => openWorld(engine))

  test.each([
    ['keys revoke key_nope', 'tollgate keys list'],
    ['keys rotate key_nope', 'tollgate keys list'],
    ['limits show key_nope', 'tollgate keys list'],
    ['requests show req_nope', 'tollgate requests'],
    ['explain req_nope', 'tollgate requests'],
    ['route nope', 'tollgate models'],
    ['prices set nope --free', 'tollgate models'],
    ['prices history nope', 'tollgate models'],
  ])('suggests the command that lists what does not exist: %s', async (args, attempt) => {
    await using world = await openWorld(engine)
    const { exit, err } = await world.run(args)
    expect([exit, err.split('\n').at(-2)]).toEqual([4, `Try: ${attempt}`])
    expect(err).not.toContain('/api/')
  })

  storeTest('names the variable that enables a provider of a built-in model', async (world) => {
    const { exit, err } = await world.run('route openai/gpt-5.1')
    expect(exit).toBe(4)
    expect(err).toContain('Start the gateway with OPENAI_API_KEY (openai), or OPENROUTER_API_KEY (openrouter).')
    expect(err).toEndWith('Try: OPENAI_API_KEY=… tollgate serve\n')
  })

  storeTest('names options as typed in errors of the gateway', async (world) => {
    const { id } = await world.management.make('/api/workspaces', { name: 'acme' })
    await world.management.make(`/api/workspaces/${id}/projects`, { name: 'web' })
    const said = async (args: string) => (await world.run(args)).err.split('\n')[0]
    expect(await said('keys create --name ci --from nowhere')).toStartWith('tollgate: --from must be an address')
    expect(await said('keys create --name ci --models nonsense')).toStartWith('tollgate: --models must be')
    expect(await said('keys create --name ci --rpm 99999999999')).toStartWith('tollgate: --rpm must be')
    expect(await said('usage --by nonsense')).toStartWith('tollgate: --by must be')
  })

  storeTest('says that a list is empty, and why it may be', async (world) => {
    expect((await world.run('requests')).err).toBe('No requests yet.\n')
    const { exit, err } = await world.run('requests --model nope')
    expect([exit, err]).toEqual([0, expect.stringMatching(/^No request matches --model nope: .*tollgate models\n$/)])
    expect((await world.run('usage --from 2026-01-01 --to 2026-02-01')).err).toStartWith('No usage in that time')
    const reversed = await world.run('usage --from 2026-02-01 --to 2026-01-01')
    expect([reversed.exit, reversed.out]).toEqual([2, ''])
    expect(reversed.err).toContain('nothing between --from, 2026-02-01T00:00:00.000Z, and --to, 2026-01-01')
  })

  storeTest('marks token counts, and shows the key and project of a request', async (world) => {
    const { id } = await world.management.make('/api/workspaces', { name: 'acme' })
    const project = await world.management.make(`/api/workspaces/${id}/projects`, { name: 'web' })
    const key = await world.management.make(`/api/projects/${project.id}/keys`, { name: 'ci' })
    const request = createId('req')
    const asked = { workspace_id: id, project_id: project.id, key_id: key.id, model: 'acme/large', status: 200 }
    world.management.logged.push({ ...asked, id: request, path: '/v1/messages/count_tokens', candidates: [] })
    expect((await world.run('requests')).out).toContain(' acme/large (count_tokens) ')
    expect((await world.run(`requests show ${request}`)).out).toContain(`ci (${key.id}) of web\n`)
    const unknown = { ...asked, model: null, requested_model: 'acme/lagre', status: 404 }
    world.management.logged.push({ ...unknown, id: createId('req'), path: '/v1/messages', candidates: [] })
    expect((await world.run('requests')).out).toContain(' 404  acme/lagre ')
  })

  storeTest('refuses a backup into a folder that does not exist', async (world) => {
    const folder = join(world.folder, 'no', 'such')
    expect(await world.run('backup no/such/x.db')).toMatchObject({
      exit: 1,
      err: `tollgate: there is no folder ${folder}.\nTry: mkdir -p ${folder}\n`,
    })
  })
})

onSqlite((engine) => {
  test('G3: exports a workspace as lines, and erases it only with --yes', async () => {
    await using world = await openWorld(engine)
    const { id } = await world.management.make('/api/workspaces', { name: 'Jane Roe' })
    const project = await world.management.make(`/api/workspaces/${id}/projects`, { name: 'home' })
    await world.management.make(`/api/projects/${project.id}/keys`, { name: 'laptop' })
    const exported = await world.run(`workspaces export ${id}`)
    expect(exported.exit).toBe(0)
    const records = exported.out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).record)
    expect(records.filter((record) => record !== 'audit')).toEqual(['workspace', 'wallet', 'plan', 'project', 'key'])

    const refused = await world.run(`workspaces erase ${id}`)
    expect([refused.exit, refused.err]).toEqual([
      2,
      expect.stringContaining(`Try: tollgate workspaces erase ${id} --yes`),
    ])
    expect((await world.json(`workspaces show ${id}`)).name).toBe('Jane Roe')
    const erased = await world.run(`workspaces erase ${id} --yes`)
    expect([erased.exit, erased.out]).toEqual([
      0,
      `${id} is erased: 1 keys, 0 credentials, 0 stored responses, 0 batches, 0 requests. Its charges and its balance stay.\n`,
    ])
    expect((await world.json(`workspaces show ${id}`)).name).toBe('erased')
  })

  test('exits with 4 for a workspace that does not exist', async () => {
    await using world = await openWorld(engine)
    const id = 'ws_01JC0000000000000000000000'
    expect(await world.run(`workspaces export ${id}`)).toMatchObject({ exit: 4, out: '' })
    expect(await world.run(`workspaces erase ${id} --yes`)).toMatchObject({ exit: 4, out: '' })
  })
})

onSqlite((engine) => {
  const storeTest = testWith(() => openWorld(engine))

  storeTest(
    'the program reads its arguments, environment and standard input, and exits with the code',
    async (world) => {
      const { id } = await world.management.make('/api/workspaces', { name: 'acme' })
      const [put, unknown, refused] = await Promise.all(
        [
          world.spawn('credentials put acme', { input: 'sk-provider-secret-9876\n' }),
          world.spawn('kyes'),
          world.spawn('wallet topup five'),
        ].map(ranOf),
      )
      expect(put).toEqual({ exit: 0, out: `Key …9876 for acme is stored in ${id}.\n`, err: '' })
      expect(unknown).toEqual({ exit: 2, out: '', err: 'tollgate: unknown command "kyes".\nTry: tollgate keys\n' })
      expect(refused).toMatchObject({ exit: 2, out: '', err: expect.stringContaining('AMOUNT must be an amount') })
    },
  )

  describe('errors have an exit code and something to try', () => {
    storeTest('exits with 2 for usage, 3 if not authorised, 4 if not found, 1 if nothing answers', async (world) => {
      await world.management.make('/api/workspaces', { name: 'acme' })
      const ran = (args: string, env = {}) => world.run(args, { env })
      expect(await ran('wallet topup five')).toEqual({
        exit: 2,
        out: '',
        err: 'tollgate: AMOUNT must be an amount in USD such as 25 or 0.50, not "five".\nTry: tollgate wallet topup --help\n',
      })
      expect(await ran('wallet topup 0')).toMatchObject({
        exit: 2,
        err: expect.stringContaining('AMOUNT must be above zero, not "0".'),
      })
      const unauthorized = await ran('keys', { TOLLGATE_ADMIN_TOKEN: 'not-the-token-0123456789' })
      expect(unauthorized.exit).toBe(3)
      expect(unauthorized.err).toMatch(/This is not the management token.*\nTry: TOLLGATE_ADMIN_TOKEN=/)
      expect(await ran('keys', { TOLLGATE_ADMIN_TOKEN: '' })).toMatchObject({
        exit: 3,
        err: expect.stringMatching(/there is no management token: .* cannot be read\.\nTry: /),
      })
      expect(await ran('keys revoke key_00000000000000000000000000')).toMatchObject({
        exit: 4,
        err: expect.stringContaining('There is no key key_0'),
      })
      expect(await ran('explain req_nothing')).toMatchObject({ exit: 4 })
      expect(await ran('keys', { TOLLGATE_URL: 'http://127.0.0.1:1' })).toEqual({
        exit: 1,
        out: '',
        err: 'tollgate: nothing answers at http://127.0.0.1:1.\nTry: tollgate serve, or TOLLGATE_URL=http://HOST:PORT of a running gateway\n',
      })
      expect(await ran('keys', { TOLLGATE_URL: 'nonsense' })).toMatchObject({
        exit: 1,
        err: expect.stringContaining('TOLLGATE_URL'),
      })
    })

    storeTest('exits with 5 for a 402 and a 429, and recognises a server that is not a gateway', async (world) => {
      const error = { message: 'Slow\u001b[2J down.', type: 't', param: null, code: 'LIMIT_EXCEEDED' }
      using server = Bun.serve({
        port: 0,
        hostname: '127.0.0.1',
        fetch(request) {
          const { pathname } = new URL(request.url)
          if (pathname === '/api/keys') return Response.json({ error }, { status: 429 })
          if (pathname === '/api/audit') return Response.json({ error }, { status: 402 })
          if (pathname === '/api/requests') return Response.redirect('http://127.0.0.1:1/', 302)
          return new Response('<html>', { status: 200 })
        },
      })
      const env = { TOLLGATE_URL: `http://127.0.0.1:${server.port}/v1/` }
      // The sequence that would clear the screen arrives as text.
      expect(await world.run('keys', { env })).toMatchObject({
        exit: 5,
        err: expect.stringContaining('Slow\ufffd[2J down.'),
      })
      expect((await world.run('audit', { env })).exit).toBe(5)
      for (const command of ['models', 'requests']) {
        expect(await world.run(command, { env })).toMatchObject({
          exit: 1,
          err: expect.stringContaining('not as a Tollgate'),
        })
      }
    })

    storeTest('uses the token of the data folder on this machine', async (world) => {
      await world.management.make('/api/workspaces', { name: 'acme' })
      mkdirSync(join(world.folder, 'data'))
      writeFileSync(join(world.folder, 'data', 'admin-token'), `${managementToken}\n`)
      expect((await world.json('workspaces', { env: { TOLLGATE_ADMIN_TOKEN: '' } })).data).toHaveLength(1)
    })
  })
})
