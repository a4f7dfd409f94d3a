import { expect, test } from 'bun:test'
import { forEachEngine } from '../../../test/parts/engines.ts'
import { openManagement } from '../../../test/parts/management.ts'

const byFile = { 'x-tollgate-managed-by': 'file' }

forEachEngine((engine) => {
  test('what is made for a file is changed for a file alone', async () => {
    await using management = await openManagement(engine)
    const workspace = await management.make('/api/workspaces', { name: 'acme' })
    expect(workspace.managed_by).toBe('api')
    const path = `/api/workspaces/${workspace.id}/projects`
    const { body: project } = await management.ask('POST', path, { body: { name: 'web' }, headers: byFile })
    expect(project.managed_by).toBe('file')
    const change = (headers: Record<string, string>) =>
      management.ask('PATCH', `/api/projects/${project.id}`, { body: { models: ['acme/*'] }, headers })
    for (const headers of [{}, { 'x-tollgate-managed-by': 'api' }]) {
      const refused = await change(headers)
      expect([refused.status, refused.body.error.code]).toEqual([400, 'INVALID_REQUEST'])
      expect(refused.body.error.message).toStartWith('This project is managed by a file; change it there')
    }
    expect((await change(byFile)).body.models).toEqual(['acme/*'])
    const { body: audit } = await management.ask('GET', '/api/audit')
    // Whoever sends the header is still told apart from others.
    type Entry = { readonly actor: string; readonly details: { readonly managed_by?: string } }
    expect(audit.data.map(({ actor, details }: Entry) => [actor, details.managed_by])).toEqual([
      ['management token', 'file'],
      ['management token', 'file'],
      ['management token', undefined],
    ])
  })

  test('another manager than these two is refused by name, and the header is no token', async () => {
    await using management = await openManagement(engine)
    const wrong = await management.ask('POST', '/api/workspaces', {
      body: { name: 'acme' },
      headers: { 'x-tollgate-managed-by': 'me' },
    })
    expect([wrong.status, wrong.body.error.param]).toEqual([400, 'x-tollgate-managed-by'])
    const stranger = await management.ask('POST', '/api/workspaces', {
      body: { name: 'acme' },
      headers: byFile,
      token: null,
    })
    expect(stranger.status).toBe(401)
  })
})
