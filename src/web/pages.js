// The way from the server to the pages. Plain JavaScript with its types beside it: the pages are checked against the
// browser's types, which must not leak into the server's (they change what Response, Worker and streams are).

export { renderDocument } from './pages/document.tsx'
