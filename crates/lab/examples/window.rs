use framewire_lab::{StockMgba, StockOptions, paths, ports};
fn main() {
    let port = ports::free();
    let options = StockOptions::new(&paths::rom()).script(&paths::script()).port(port);
    let mgba = StockMgba::start(&options).unwrap();
    println!("{}", mgba.address());
    let _ = std::io::stdin().read_line(&mut String::new());
    println!("{:?} {}", mgba.title(), mgba.console());
}
