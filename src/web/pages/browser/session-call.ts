// Opens and ends a session of the console. JSON, so that no form of another site can do the same.

/** undefined = done; otherwise what to tell the person. */
export async function openSession(wish: { link: string } | { token: string }): Promise<string | undefined> {
  return await call('POST', '/console/session', JSON.stringify(wish))
}

export async function endSession(): Promise<string | undefined> {
  return await call('DELETE', '/console/session', undefined)
}

/** Of every browser. */
export async function endAllSessions(): Promise<string | undefined> {
  return await call('DELETE', '/console/sessions', undefined)
}

async function call(method: string, path: string, body: string | undefined): Promise<string | undefined> {
  try {
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(path, { method, headers, ...(body !== undefined && { body }) })
    if (response.ok) return undefined
    const answer = (await response.json()) as { error?: { message?: string } }
    return answer.error?.message ?? `The gateway answered ${response.status}.`
  } catch {
    return 'The gateway does not answer. Is it running?'
  }
}
