import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { errorOf, targetOf } from './client.ts'

test('a target has the method and the path of its operation, with encoded parameters', () => {
  expect(targetOf('listWorkspaces')).toEqual({ method: 'GET', path: '/api/workspaces' })
  expect(targetOf('revokeKey', { id: 'key_1' })).toEqual({ method: 'POST', path: '/api/keys/key_1/revoke' })
  // A slash, a question mark or dots in a value must not change the path.
  expect(targetOf('getPrice', { model: 'acme/large?x=../y' }).path).toBe('/api/models/acme%2Flarge%3Fx%3D..%2Fy/price')
  expect(targetOf('putCredential', { id: 'ws_1', provider: 'acme' })).toEqual({
    method: 'PUT',
    path: '/api/workspaces/ws_1/credentials/acme',
  })
})

test('a query contains the values that are given, encoded', () => {
  const query = { limit: 20, cursor: undefined, model: 'a b&c', outcome: null }
  expect(targetOf('listRequests', {}, query).path).toBe('/api/requests?limit=20&model=a+b%26c')
  expect(targetOf('listRequests', {}, { cursor: undefined }).path).toBe('/api/requests')
})

test('an error of the API is read with its code and field, and anything else is not one', () => {
  const error = { message: 'No.', type: 'invalid_request_error', param: 'name', code: 'INVALID_REQUEST' }
  const read = { message: 'No.', code: 'INVALID_REQUEST', param: 'name', reason: undefined }
  expect(errorOf({ error })).toEqual(read)
  expect(errorOf({ error: { ...error, metadata: { reason: 'empty' } } })).toEqual({ ...read, reason: 'empty' })
  expect(errorOf({ error: { message: 'No.', param: null } })).toEqual({
    message: 'No.',
    code: undefined,
    param: undefined,
    reason: undefined,
  })
  for (const other of [undefined, null, 'error', [], {}, { error: 'No.' }, { error: { code: 'X' } }]) {
    expect(errorOf(other)).toBeUndefined()
  }
})

test('the client bundles for the browser without schemas', async () => {
  const built = await Bun.build({ entrypoints: [join(import.meta.dir, 'client.ts')], target: 'browser', minify: true })
  expect(built.success).toBe(true)
  const [output] = built.outputs
  const text = (await output?.text()) ?? ''
  expect(text).toContain('/api/openapi.json')
  expect(text).not.toContain('safeParse')
  // The endpoint table and two functions. With zod it would be more than 50 KB.
  expect(text.length).toBeLessThan(8_000)
})
